"""The moment that a refresh is to show: a commit number or a time, perhaps one that is to come."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

from steadyview.catalog import Catalog, Clock, from_us, to_us
from steadyview.errors import OutsideRetention

_LOOK = 0.1
"""Seconds between two looks at the catalog, while a commit is waited for."""


def target(
    catalog: Catalog, clock: Clock, to: int | datetime | str, wait: timedelta | None
) -> int:
    """The cn that is meant, for good; what is to come is waited for, `wait` at most.

    A time means the newest commit that was admitted by then; without a zone it is UTC.
    """
    left = threading.Event()
    until = clock.now_us() + int((wait or timedelta()).total_seconds() * 1_000_000)
    if isinstance(to, int):
        while to > catalog.commits.last_cn() and clock.now_us() < until:
            left.wait(_LOOK)
        return to
    moment = datetime.fromisoformat(to) if isinstance(to, str) else to
    time = to_us(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    if clock.now_us() < time <= until:
        left.wait((time - clock.now_us()) / 1_000_000 + 0.001)
    elif time > until:
        raise OutsideRetention(
            f"{from_us(time).isoformat()} is still to come",
            hint="wait for it with --wait, or refresh to now",
        )
    return catalog.commits.cn_at(time)
