"""Judges histories of deferred views: which of six properties they break, and a witness for each.

Beyer et al., *Immediate Propagate Deferred Apply*, section 3. A deferred view is refreshed now and
then: an apply step rolls it to a target time by rows of its view delta. A recorded history has the
transactions that committed and the apply steps; the database and its schedule are not needed.

    real time  implies  lost, redundant, in a view, across views, reordered  are not broken

so a history is judged by the last property and explained by the first five.
"""

from steadyview.checking.deferred.conviction import Conviction
from steadyview.checking.deferred.history import ApplyStep, DeferredHistory, DeferredTransaction
from steadyview.checking.deferred.precedence import ONE_DATABASE, PER_SOURCE
from steadyview.checking.deferred.properties import PROPERTIES, convictions

__all__ = [
    "ONE_DATABASE",
    "PER_SOURCE",
    "PROPERTIES",
    "ApplyStep",
    "Conviction",
    "DeferredHistory",
    "DeferredTransaction",
    "convictions",
]
