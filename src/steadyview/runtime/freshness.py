"""How old an answer may be: judged for each source, by what of it the answer cannot show.

For an answer that shows everything up to cn r, a source's part was surely true at

    min( time of its first commit after r,  when it was last heard from )

so an answer is fresh within a bound if all of these lie within it: each source's part was true at
some instant within the bound, not all at the same one. A source that is away makes it stale. Times
are those of admission, some milliseconds after the source's own.

The process that captures knows when all that a source had delivered was admitted. Others know when
it was in contact, which it writes down now and then: it may have had changes in hand for a second.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta

from steadyview.catalog import Catalog
from steadyview.errors import OutsideRetention

Ages = Mapping[str, float | None]
"""By source, seconds; None: it was never heard from."""


_IN_HAND = 1_000_000
"""Microseconds for which a capture may keep changes in hand."""


def ages(
    catalog: Catalog, sources: Collection[str], shown: int, now: int, live: Mapping[str, int]
) -> dict[str, float | None]:
    """How old each source's part of an answer may be that shows everything up to cn `shown`.

    `live`: when the sources were heard from, as this process knows it itself.
    """
    noted = {s.name: s.heard - _IN_HAND for s in catalog.sources.states() if s.heard is not None}
    heard = {**noted, **live}
    return {name: _age(catalog, name, heard.get(name), shown, now) for name in sorted(sources)}


def oldest(found: Ages) -> float:
    """The age of the oldest part, endless where one was never heard from; 0 of no source."""
    endless = float("inf")
    return max((endless if age is None else age for age in found.values()), default=0.0)


def within(found: Ages, bound: timedelta) -> bool:
    """Whether no part is older."""
    return oldest(found) <= bound.total_seconds()


def _age(catalog: Catalog, source: str, heard: int | None, shown: int, now: int) -> float | None:
    first = catalog.commits.first_after(source, shown)
    times = [t for t in (heard, _time(catalog, first)) if t is not None]
    if heard is None or (first is not None and len(times) < 2):
        return None
    return max(0.0, (now - min(times)) / 1_000_000)


def _time(catalog: Catalog, cn: int | None) -> int | None:
    try:
        return None if cn is None else catalog.commits.time_of(cn)
    except OutsideRetention:
        return None
