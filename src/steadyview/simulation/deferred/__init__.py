"""Deferred views over random transactions: every way to find the records that an apply step takes.

Belongs here: the database under the processes of `maintenance/ipda` (locks, clocks, delta tables,
a commit table), a scheduler that suspends them between any two requests, and the product's own way
beside them (`commit_numbers`). Histories are judged by `checking/deferred`.
Law: the same way and seed give the same history everywhere.
"""

from steadyview.simulation.deferred.measuring import Convicted, convicted
from steadyview.simulation.deferred.running import DeferredTrace, deferred
from steadyview.simulation.deferred.ways import WAYS, Way, way_of

__all__ = ["WAYS", "Convicted", "DeferredTrace", "Way", "convicted", "deferred", "way_of"]
