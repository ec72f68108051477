"""Whether queries over tables are answered from views, and what became of one: plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Route(StrEnum):
    """Whether a query over tables of sources may, or must, be answered from a view."""

    off = "off"
    auto = "auto"
    require = "require"


@dataclass(frozen=True)
class Turned:
    """A view that could not answer: which rule says so, and why, for people."""

    view: str
    rule: str
    why: str


@dataclass(frozen=True)
class Offer:
    """A view that answers: by which rule, by which query over it, of how many stored rows.

    `why_not`: why it was not taken all the same; None of the one that was.
    """

    view: str
    rule: str
    sql: str
    rows: int
    why_not: str | None = None


@dataclass(frozen=True)
class RoutePlan:
    """What becomes of a query: `taken` answers it, None: its tables do, or its own views.

    `offers` are the views that give the same rows, the taken one first; `turned`: all others that
    read one of its tables. `why`: why no view was looked for.
    """

    taken: Offer | None
    offers: tuple[Offer, ...] = ()
    turned: tuple[Turned, ...] = ()
    why: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @staticmethod
    def of(found: Mapping[str, Any]) -> RoutePlan:
        """Back from JSON."""
        taken = found["taken"]
        return RoutePlan(
            None if taken is None else Offer(**taken),
            tuple(Offer(**offer) for offer in found["offers"]),
            tuple(Turned(**turned) for turned in found["turned"]),
            found["why"],
        )


NOWHERE = RoutePlan(None)
