"""The algebra through which an algorithm touches data it cannot see.

A handle H stands for a bag of rows. Three kinds pass through the sweep's hands:

- an *answer*: rows of one relation as its source showed them, in the state S that reflects P;
- a *partner* of occurrence v: the relation at every time t of the batch. For all t

      R_v(t)  =  answer  -  sum{ dR_v(s) : s in P, s > t }  +  sum{ dR_v(s) : s not in P, s <= t }

- a *partial*: joined rows over the occurrences bound so far, each with a signed count and the cn k
  of the transaction whose change it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from steadyview.views.definition import Occurrence

H = TypeVar("H")


class RelationAlgebra(Protocol[H]):
    """The operations of the batched sweep. The algebra holds the batch (a, b], its log, every P."""

    def seed(self, occurrence: Occurrence, conditions: Sequence[str]) -> H:
        """dR_i(k) for every k in (a, b], tagged with k: a partial that binds `occurrence` alone."""

    def partner(self, occurrence: Occurrence, answer: H) -> H:
        """The relation of `occurrence` at every time of the batch, as far as `answer` covers it."""

    def keys(self, handles: Sequence[H], occurrence: Occurrence, column: int) -> H:
        """At least every non-NULL value of the column of `occurrence` in partials and partners."""

    def extend(
        self,
        partial: H,
        occurrence: Occurrence,
        partner: H,
        conditions: Sequence[str],
        *,
        own: bool,
    ) -> H:
        """Join with R_v(t) on the conditions; t = k if `own` (k's own change is in), else k - 1."""

    def add(self, partials: Sequence[H]) -> H:
        """The bag sum of partials that bind every occurrence."""
