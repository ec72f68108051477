"""A flush: transactions that are durable in the update log, and exist once they are admitted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from steadyview.changes.relations import RelationName
from steadyview.changes.stream import Loss


@dataclass(frozen=True)
class Flush:
    """Transactions seq_from..seq_to of a source, durable in the log (none if seq_to is less).

    `position`: where capture resumes after them (None: nothing came at all), and `proof` what it
    must find there again. `lost`: what was lost at one of them. `rows`: how many each log got.
    `dated`: the latest commit time that the source itself gave to one up to them.
    """

    source: str
    number: int
    seq_from: int
    seq_to: int
    position: str | None
    lost: tuple[Loss, ...] = ()
    proof: str = ""
    rows: Mapping[RelationName, int] = field(default_factory=dict)
    dated: int = 0
