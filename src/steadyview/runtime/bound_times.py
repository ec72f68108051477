"""What gates have to do with a moment, for people: which times a state is of, and how exactly."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from steadyview.catalog import BoundTime, Catalog, MeantCommit, ViewRow, from_us
from steadyview.timing.gates import AHEAD, MIXED, SILENT

_WHY = {
    SILENT: "was not heard from in time: what it committed by then may be missing",
    AHEAD: "had dated a commit later before that time: some of what it committed later may be in",
    MIXED: "was not looked at just then: what it committed since the look before counts as later",
}


@dataclass(frozen=True)
class ShownTime:
    """A time that a state is of. `told`: the sources that it is not exact for, with why."""

    time: datetime
    told: Mapping[str, str]

    def to_dict(self) -> dict[str, Any]:
        """For JSON; time in ISO format."""
        return {"time": self.time.isoformat(timespec="microseconds"), "told": dict(self.told)}


def sources_of(row: ViewRow, rows: Mapping[int, ViewRow]) -> frozenset[str]:
    """The sources that a view reads, itself or over others, as the catalog remembers it."""
    kept = json.loads(row.definition or "{}")
    own = {relation["source"] for relation in kept.get("relations", ())}
    below = (sources_of(rows[i], rows) for i in kept.get("inputs", {}).values() if i in rows)
    return frozenset(own).union(*below)


def shown_times(
    catalog: Catalog, cn_from: int, cn_to: int, sources: Collection[str]
) -> list[ShownTime]:
    """The times that gates of all these sources have bound to the commits between, in order."""
    found = catalog.gates.of(cn_from, cn_to)
    return [_shown(gate, sources) for gate in found if set(sources) <= set(gate.sources)]


def doubts(time: datetime, told: Mapping[str, str]) -> Iterator[str]:
    """A sentence for each source that the time is not exact for."""
    for source, why in sorted(told.items()):
        yield f'{time.isoformat()}: source "{source}" {_WHY[why]}'


def meaning(meant: MeantCommit) -> str:
    """What a time means, in a sentence."""
    if meant.bound:
        return f"a gate has bound that time to cn {meant.cn}"
    return f"no gate has bound that time: it means the newest commit admitted by then, {meant.cn}"


def _shown(gate: BoundTime, sources: Collection[str]) -> ShownTime:
    told = {name: why for name, why in gate.told.items() if name in sources}
    return ShownTime(from_us(gate.time), told)
