"""How old an answer may be, and what becomes of one that is older: plain values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any


class OnStale(StrEnum):
    """What becomes of a query whose answer would be too old."""

    compensate = "compensate"
    wait = "wait"
    fail = "fail"


PATIENCE = timedelta(seconds=30)
"""How long is waited for a fresher answer, where nothing is said."""


@dataclass(frozen=True)
class Staleness:
    """How old an answer may be; None: of any age. What is done about an older one, and how long."""

    bound: timedelta | None = None
    on_stale: OnStale = OnStale.compensate
    patience: timedelta = PATIENCE
    as_published: bool = False

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        bound = None if self.bound is None else self.bound.total_seconds()
        return {
            "bound": bound,
            "on_stale": self.on_stale.value,
            "patience": self.patience.total_seconds(),
            "as_published": self.as_published,
        }

    @staticmethod
    def of(found: dict[str, Any]) -> Staleness:
        """Back from JSON."""
        bound = found["bound"]
        return Staleness(
            None if bound is None else timedelta(seconds=bound),
            OnStale(found["on_stale"]),
            timedelta(seconds=found["patience"]),
            found["as_published"],
        )


ANY_AGE = Staleness()
