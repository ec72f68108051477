"""Judges histories of a store's records: which level each view record reached, and a witness.

Jacobsen, Lee, Yerneni, *View Maintenance in Web Data Platforms*, section III, made exact. A base
state is a vector, one version of each base record ("absent" is one); *every* vector between the
first and the last is a base state. A view record's history is the sequence of values that readers
saw, absent included, repetitions collapsed; what the store hides is no part of it. Record by
record:

    convergent   the last value is that of the last vector
    weak         and every value is that of some vector
    strong       and one non-decreasing chain of vectors gives them all
    complete     and the value of every vector is shown; said only where one base record decides

The paper says strong of *pairs* of states. That is too little: time-line b, a, c, b and values
b, a, b, c, b pass every pair, and no one order explains them. `pairwise` is told beside it.
Nothing is said about two records together. Nothing here knows how records are kept.
"""

from steadyview.checking.records.history import ABSENT, RecordHistory, RecordView
from steadyview.checking.records.judge import RecordFinding, RecordVerdict, judge_records
from steadyview.checking.records.views import RECORD_VIEWS

__all__ = [
    "ABSENT",
    "RECORD_VIEWS",
    "RecordFinding",
    "RecordHistory",
    "RecordVerdict",
    "RecordView",
    "judge_records",
]
