"""A recorded history of a store: time-lines of base records, and what view records showed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from steadyview.algebra import Row

BaseKey: TypeAlias = tuple[str, Hashable]
"""A relation, and a key in it."""
Shown: TypeAlias = tuple[Any, ...] | None
"""What readers see of a view record beside its key."""
ABSENT: Final[Shown] = None
TimeLines: TypeAlias = Mapping[BaseKey, Sequence[Row | None]]
"""Per base record its versions, the first as it was at the beginning."""
Present: TypeAlias = Sequence[tuple[str, Row]]
"""The rows of one vector, as far as they matter."""


@dataclass(frozen=True)
class RecordView:
    """What a view means.

    `deciding`: which base records decide a view record, by any version of theirs. `value`: what it
    is over rows of those. `records`: all view records that there can be.
    """

    value: Callable[[Hashable, Present], Shown]
    deciding: Callable[[Hashable, TimeLines], Sequence[BaseKey]]
    records: Callable[[TimeLines], frozenset[Hashable]]


@dataclass(frozen=True)
class RecordHistory:
    """`shown`: by view record the values that were visible, one after the other."""

    view: RecordView
    timelines: TimeLines
    shown: Mapping[Hashable, Sequence[Shown]]

    @property
    def keys(self) -> frozenset[Hashable]:
        """All view records that were seen or should have been."""
        return self.view.records(self.timelines) | frozenset(self.shown)
