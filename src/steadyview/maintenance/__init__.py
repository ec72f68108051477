"""Maintenance algorithms, each a state machine without I/O (law 2).

Belongs here: what to ask, in which order, and how answers and logged changes combine.
Does not belong here: how a relation is stored, asked for or joined; a clock; a thread.
Law: events in, actions out (`events`); data is opaque and worked on only through an algebra: the
batched sweep's is `RelationAlgebra`, that of the papers' algorithms `ViewAlgebra`. `algorithms`
lists them all.
"""

from steadyview.maintenance.batched_sweep import BatchedSweep, EdgeLookup, Record
from steadyview.maintenance.first_state import FirstState
from steadyview.maintenance.relation_algebra import RelationAlgebra

__all__ = ["EdgeLookup", "BatchedSweep", "FirstState", "Record", "RelationAlgebra"]
