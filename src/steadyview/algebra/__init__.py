"""Rows with signed counts, in memory (law 6).

Belongs here: what a bag of counted rows is.
Does not belong here: what a row means (`views`), who changed it (`changes`), anything with I/O.
Law: values are immutable, zero counts are never stored, no operation loses or merges a duplicate.
"""

from steadyview.algebra.bag import Bag, Row, Value

__all__ = ["Bag", "Row", "Value"]
