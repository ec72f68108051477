"""The algebra through which the algorithms of the papers touch data they cannot see.

A handle H stands for a bag of rows with signed counts, of one of three kinds:

- *rows* of one relation: the changes of an update, or what a source showed;
- *joined* rows: they bind some positions of FROM, with all columns of each (projection comes last);
- *view* rows: what the view shows, or a change of it.

Row identity, keys and merging use `<=>`, join conditions SQL's `=` (law 6).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

H = TypeVar("H")


class ViewAlgebra(Protocol[H]):
    """The operations; an implementation is made for one view."""

    def seed(self, position: int, rows: H) -> H:
        """Rows of the position's relation as joined rows that bind this position alone."""

    def join(self, joined: H, position: int, rows: H) -> H:
        """Bind one more position; every condition is applied once all its positions are bound."""

    def merge(self, left: H, right: H, position: int) -> H:
        """Join two joined bags that have `position`, all its columns, in common and no other."""

    def project(self, joined: H) -> H:
        """View rows of joined rows that bind every position."""

    def add(self, handles: Sequence[H]) -> H:
        """The bag sum of at least one handle, all of one kind."""

    def negate(self, handle: H) -> H:
        """Every count with the other sign."""

    def plus(self, handle: H) -> H:
        """The rows with counts above zero: what was inserted, net."""

    def minus(self, handle: H) -> H:
        """The rows with counts below zero, their counts made positive: what was deleted, net."""

    def distinct(self, handle: H) -> H:
        """Every row of the bag once, whatever its count."""

    def without(self, rows: H, others: H) -> H:
        """The rows that are not among the others, all columns compared."""

    def key_delete(self, view: H, position: int, rows: H) -> H:
        """View rows whose key of `position` is not that of any of the rows."""

    def row_delete(self, joined: H, position: int, rows: H) -> H:
        """Joined rows whose row at `position` is not one of the rows: `key_delete*`."""

    def is_empty(self, handle: H) -> bool:
        """Whether no row has a count other than zero."""

    def materialized(self, handle: H) -> H:
        """The same rows, computed now: looking again will not ask anybody again."""
