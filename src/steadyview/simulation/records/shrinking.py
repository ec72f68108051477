"""A failing history made small: fewer changes, fewer base records, another schedule.

Nothing of a schedule can be kept when a change is left out, so each smaller world is tried under
some schedules. What is found is small, not the smallest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from random import Random

from steadyview.checking.records import RecordHistory, RecordVerdict, judge_records
from steadyview.checking.verdict import LEVELS
from steadyview.simulation.records.faults import RunFaults
from steadyview.simulation.records.running import RecordRun
from steadyview.simulation.records.telling import told_row
from steadyview.simulation.records.ways import RecordWay
from steadyview.simulation.records.worlds import RecordWorld, record_world

_SCHEDULES, _ENOUGH = 400, 5


@dataclass(frozen=True)
class SmallRun:
    """What happened, and why it is convicted."""

    first: str
    story: tuple[str, ...]
    verdict: RecordVerdict

    @property
    def text(self) -> str:
        """For a person."""
        return "\n".join([self.first, *self.story, self.verdict.sentence])


def shrunk(way: RecordWay, faults: RunFaults, seed: int, *, lost: str) -> SmallRun:
    """From a seed whose history does not reach the level `lost`."""
    random = Random(seed)
    world = record_world(random, way.kind)
    best, smaller = _run(way, faults, world, random), True
    while smaller:
        smaller = False
        for candidate in _smaller(world, way.kind):
            run = _failing(way, faults, candidate, lost)
            if run is not None:
                world, best, smaller = candidate, run, True
                break
    return best


def _failing(way: RecordWay, faults: RunFaults, world: RecordWorld, lost: str) -> SmallRun | None:
    """The shortest of some runs that fail, under some schedules."""
    runs = (_run(way, faults, world, Random(schedule)) for schedule in range(_SCHEDULES))
    failing = (run for run in runs if LEVELS.index(run.verdict.level) < LEVELS.index(lost))
    return min(islice(failing, _ENOUGH), key=lambda run: len(run.story), default=None)


def _run(way: RecordWay, faults: RunFaults, world: RecordWorld, random: Random) -> SmallRun:
    run = RecordRun(way, faults, world, random)
    run.story = []
    history: RecordHistory = run.finish().history
    there = [
        f"{base[0]} {told_row(row)}" for base, row in world.first.items() if row is not None
    ]
    first = f"first: {', '.join(there) or 'nothing'}"
    return SmallRun(first, tuple(run.story), judge_records(history))


def _smaller(world: RecordWorld, kind: str) -> Iterator[RecordWorld]:
    """One change less; one base record less that never changes; one row less at first."""
    for n in range(len(world.changes)):
        candidate = replace(world, changes=world.changes[:n] + world.changes[n + 1 :])
        if _is_sound(candidate, kind):
            yield candidate
    for base, row in world.first.items():
        if row is not None:
            candidate = replace(world, first={**world.first, base: None})
            if _is_sound(candidate, kind):
                yield candidate


def _is_sound(world: RecordWorld, kind: str) -> bool:
    """Every change changes something, and foreign keys hold at every moment."""
    now = dict(world.first)
    for base, row in [(None, None), *world.changes]:
        if base is not None:
            if now[base] == row:
                return False
            now[base] = row
        if kind == "join":
            rows = [r for (relation, _), r in now.items() if relation == "R" and r is not None]
            if any(now.get(("S", r[1])) is None for r in rows):
                return False
    return True
