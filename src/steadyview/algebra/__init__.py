"""Rows with signed counts, in memory (law 6).

Belongs here: what a bag of counted rows is, how it changes over time, how it is summarized.
Does not belong here: what a row means (`views`), who changed it (`changes`), anything with I/O.
Law: values are immutable, zero counts are never stored, no operation loses or merges a duplicate.
"""

from steadyview.algebra.bag import Bag, Row, Value
from steadyview.algebra.summary import Summary
from steadyview.algebra.versions import BEGINNING, FOREVER, Step, Version, Versions

__all__ = [
    "BEGINNING",
    "FOREVER",
    "Bag",
    "Row",
    "Step",
    "Summary",
    "Value",
    "Version",
    "Versions",
]
