"""The moment that a refresh is to show: a commit number or a time, perhaps one that is to come."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from steadyview.catalog import Catalog, Clock, MeantCommit, from_us, to_us
from steadyview.errors import GateOpen, OutsideRetention

_LOOK = 0.1
"""Seconds between two looks at the catalog, while a commit is waited for."""


@dataclass(frozen=True)
class Target:
    """The cn that is meant; `time`, where one was asked for, and what it means."""

    cn: int
    time: datetime | None = None
    meant: MeantCommit | None = None


def target(
    catalog: Catalog, clock: Clock, to: int | datetime | str, wait: timedelta | None
) -> Target:
    """The cn that is meant, for good; what is to come is waited for, `wait` at most.

    A time that a gate has bound means its cn, any other the newest commit that was admitted by
    then; without a zone it is UTC.
    """
    left = threading.Event()
    until = clock.now_us() + int((wait or timedelta()).total_seconds() * 1_000_000)
    if isinstance(to, int):
        while to > catalog.commits.last_cn() and clock.now_us() < until:
            left.wait(_LOOK)
        return Target(to)
    moment = datetime.fromisoformat(to) if isinstance(to, str) else to
    time = to_us(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    if clock.now_us() < time <= until:
        left.wait((time - clock.now_us()) / 1_000_000 + 0.001)
    elif time > until:
        raise OutsideRetention(
            f"{from_us(time).isoformat()} is still to come",
            hint="wait for it with --wait, or refresh to now",
        )
    while True:
        try:
            meant = catalog.commits.meant(time)
        except GateOpen:
            if clock.now_us() >= until:
                raise
            left.wait(_LOOK)
        else:
            return Target(meant.cn, from_us(time), meant)
