"""The rounds: every case once per round, cases interleaved, each round starting with another case.

A case commits its batch, waits until all of it is captured, and refreshes each view. A round's
figures are only ever compared with figures of the same round.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from benchmarks.site import VIEWS, Site
from benchmarks.sizes import Sizes

Told = Callable[[str], None]
RECOMPUTE, PLAIN = "recompute", "plain"
FURTHER = frozenset({"tiny", "small, both views", "spread, kept", "hot, kept"})
"""Cases that a brief run leaves out."""


@dataclass
class Round:
    """Seconds by (case, what); row changes by case; parts of the refreshes by (case, view)."""

    seconds: dict[tuple[str, str], float] = field(default_factory=dict)
    changes: dict[str, int] = field(default_factory=dict)
    parts: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """A batch of changes at one site; how many there were is what `commit` returns."""

    name: str
    site: Site
    commit: Callable[[], int]
    together: bool = False
    recomputed: int = 0
    """How many of the views are computed anew as well, the first of the round's order."""

    def run(self, order: list[str]) -> Round:
        """Commit, capture, refresh the views in that order."""
        found = Round()
        started = time.perf_counter()
        found.changes[self.name] = self.commit()
        found.seconds[self.name, "commit"] = time.perf_counter() - started
        found.seconds[self.name, "capture"] = self.site.views.capture()
        if self.together:
            found.seconds[self.name, "both"] = self.site.views.refresh_all()
            return found
        for view in order:
            took, parts = self.site.refresh(view)
            # as `run` does it; what that takes has rows of its own
            self.site.views.apply_if_due(view)
            found.seconds[self.name, view] = took
            found.parts[self.name, view] = parts
        for view in order[: self.recomputed]:
            found.seconds[RECOMPUTE, view] = self.site.views.recompute(view)
            found.seconds[PLAIN, view] = self.site.plain(view)
        return found


def cases(large: Site, smaller: Site, sizes: Sizes) -> list[Case]:
    """What is measured."""
    work, other = large.workload, smaller.workload
    recomputed = 1 if sizes.runs > 1 or sizes.brief else len(VIEWS)
    found = [
        Case("share", large, lambda: work.mixed(sizes.share), recomputed=recomputed),
        Case("tiny", large, lambda: work.mixed(sizes.tiny)),
        Case("small", large, lambda: work.mixed(sizes.small)),
        Case("small at smaller scale", smaller, lambda: other.mixed(sizes.small)),
        Case("small, both views", large, lambda: work.mixed(sizes.small), together=True),
        Case("large", large, lambda: work.mixed(sizes.large)),
        Case("spread", large, lambda: work.spread(sizes.hot)),
        Case("hot", large, lambda: work.hot(sizes.hot)),
        Case("spread, kept", large, lambda: work.spread(sizes.hot, kept=True)),
        Case("hot, kept", large, lambda: work.hot(sizes.hot, kept=True)),
    ]
    return [case for case in found if not (sizes.brief and case.name in FURTHER)]


def export(site: Site, sizes: Sizes, told: Told) -> float:
    """Seconds of the export for full refreshes by Spark alone, which are tried once each."""
    told("relations exported to Parquet")
    took = site.export()
    for view in () if sizes.brief else VIEWS:
        site.plain(view)
    return took


def warm_up(large: Site, smaller: Site, sizes: Sizes, told: Told) -> None:
    """The same statements on both sites until Spark has compiled them; nothing is kept."""
    for i in range(sizes.warm_ups):
        for case in cases(smaller, smaller, sizes):
            told(f"warm-up {i + 1} of {sizes.warm_ups}: {case.name}")
            Case(case.name, smaller, case.commit).run(list(VIEWS))
    if sizes.warm_ups:
        told("warm-up at the larger scale")
        Case("small", large, lambda: large.workload.mixed(sizes.small)).run(list(VIEWS))


def rounds(large: Site, smaller: Site, sizes: Sizes, until: float, told: Told) -> Iterator[Round]:
    """Up to `sizes.runs` rounds; fewer where the next would not be over by `until` (monotonic)."""
    todo = cases(large, smaller, sizes)
    longest = 0.0
    for i in range(sizes.runs):
        started = time.monotonic()
        if i >= min(3, sizes.runs) and started + longest > until:
            return
        yield _round(todo[i % len(todo) :] + todo[: i % len(todo)], i, sizes, told)
        longest = max(longest, time.monotonic() - started)


def _round(todo: list[Case], number: int, sizes: Sizes, told: Told) -> Round:
    whole = Round()
    order = list(VIEWS) if number % 2 == 0 else list(VIEWS)[::-1]
    for case in todo:
        told(f"round {number + 1} of {sizes.runs}: {case.name}")
        part = case.run(order)
        whole.seconds.update(part.seconds)
        whole.changes.update(part.changes)
        whole.parts.update(part.parts)
    return whole


@dataclass
class Applied:
    """What keeping one view's base and state took."""

    happened: list[float] = field(default_factory=list)
    """After each of a row of 0.1 % batches, as `run` does it: next to nothing if none was due."""
    owed: float = 0.0
    """How much of a further roll these batches have left to others; 1 is all of it."""
    alone: list[float] = field(default_factory=list)
    """Rolls by a 0.1 % change each."""

    @property
    def amortised(self) -> float:
        """Seconds for each 0.1 % batch."""
        left = min(self.owed, 1) * self.alone[0]
        return (sum(self.happened) + left) / len(self.happened)


def applies(site: Site, sizes: Sizes, told: Told) -> dict[str, Applied]:
    """What apply takes in a row of 0.1 % batches, beginning and ending with a base up to date."""
    found = {view: Applied() for view in VIEWS}
    told("apply: bases brought up to date")
    for view in VIEWS:
        site.views.apply(view)
    for number in range(sizes.batches):
        told(f"apply as it happens: batch {number + 1} of {sizes.batches}")
        _share(site, sizes)
        for view in VIEWS:
            found[view].happened.append(site.views.apply_if_due(view))
    for view in VIEWS:
        found[view].owed = site.views.owed(view)
        site.views.apply(view)
    for _ in range(sizes.applies):
        told("apply alone")
        _share(site, sizes)
        for view in VIEWS:
            found[view].alone.append(site.views.apply(view))
    return found


def _share(site: Site, sizes: Sizes) -> None:
    site.workload.mixed(sizes.share)
    site.views.capture()
    site.views.refresh_all()
