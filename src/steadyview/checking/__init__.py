"""Judges histories: which of the levels of consistency a view's states reached, and a witness.

Belongs here: the levels of Zhuge, Garcia-Molina and Wiener (PDIS 1996, section 4), what a history
is and how it is written down, the search for the chain of source states that explains one; in
`deferred` the properties of views that are applied later; in `records` the levels of one record.
Does not belong here: how views are maintained. Nothing here imports `maintenance`, so that a fault
there cannot hide here.
Law: a verdict is never wrong. Where a search is cut off, the verdict is `unknown`.
"""

from steadyview.checking.finding import FAILS, HOLDS, UNKNOWN
from steadyview.checking.history import History, Relation, Transaction
from steadyview.checking.judge import judge
from steadyview.checking.verdict import LEVELS, Verdict, level_above

__all__ = [
    "FAILS",
    "HOLDS",
    "LEVELS",
    "UNKNOWN",
    "History",
    "Relation",
    "Transaction",
    "Verdict",
    "judge",
    "level_above",
]
