"""Which state of each view a query reads: all of one cn, and no older than the caller allows.

    asked for a moment              every view at that cn
    what is published               where the valid times of what the views show have a cn in common
    carried                         otherwise deferred views are brought to the others by their
                                    changes, for this query alone: what they show stays
    compensated                     too old for the bound: all are brought to now in the same way

A view over deferred ones, and one that is recomputed, cannot be carried: its text is computed at
the cn instead, from its sources.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from steadyview.catalog import Catalog, ViewRow
from steadyview.errors import OutsideRetention, TooStale
from steadyview.runtime.costs import NOTHING, Cost, Reads, cost_of, sources_of
from steadyview.runtime.freshness import Ages, ages, oldest, within
from steadyview.runtime.gaps import newest_state
from steadyview.runtime.kept import reach_of, shape_of
from steadyview.runtime.parts import Parts
from steadyview.runtime.policies import Forward, forwards, policies
from steadyview.runtime.refreshing import CarryWanted
from steadyview.runtime.serving import At, resolve
from steadyview.runtime.staleness import OnStale, Staleness
from steadyview.runtime.valid_times import Validity, overlap, validity, validity_of_tables
from steadyview.warehouse.states import check_readable
from steadyview.warehouse.view_store import ViewStore

Carry = Callable[[CarryWanted], int]
"""Have changes of views at hand; up to which cn they are."""
_LOOK = 0.05
_TRIES = 3


@dataclass(frozen=True)
class Means:
    """What choosing needs of whoever holds the warehouse.

    `heard`: when sources were heard from, if this process captures them.
    """

    carry: Carry
    heard: Callable[[], Mapping[str, int]] = dict


@dataclass(frozen=True)
class Choice:
    """All views at `cn`: `rows` as they are read, with changes that may go beyond what they show.

    `at`: where each view's state is read, the same rows as at `cn`. `recomputed`: views whose text
    is computed at `cn`. `way`: how it was chosen, for people. `carried`: the views that were
    brought there for this query; `cost`: what that took. `validity`: of the answer. `ages`: how old
    each source's part is.
    """

    cn: int
    rows: Mapping[str, ViewRow]
    at: Mapping[str, int]
    way: str
    validity: Validity
    ages: Ages = field(default_factory=dict)
    carried: tuple[str, ...] = ()
    recomputed: tuple[str, ...] = ()
    cost: Cost = NOTHING


class Choosing:
    """Chooses for one query over some views."""

    def __init__(self, parts: Parts, reads: Reads, means: Means, allowed: Staleness) -> None:
        self._parts = parts
        self._catalog: Catalog = parts.catalog
        self._names = list(reads.views)
        self._reads = reads
        self._sources = {name: sources_of(tables) for name, tables in reads.views.items()}
        self._carry = means.carry
        self._heard = means.heard
        self._allowed = allowed

    def choose(self, at: At) -> Choice:
        """The choice; OutsideRetention where there is none, TooStale where it is too old."""
        begun = time.monotonic()
        if at is not None:
            cn = resolve(self._catalog, at)
            return self._known(cn, self._reaching(), "as asked")
        bound = self._allowed.bound
        if bound is None:
            return self._together()
        if bound and (found := self.as_shown(bound)) is not None:
            return found
        return self._fresher(bound, begun)

    def live(self, cn: int) -> Choice:
        """Of a query over tables alone, which were read as of the cn, the newest one."""
        found = self._chosen(cn, {}, {}, "live", Validity(cn, None))
        return replace(found, ages=dict.fromkeys(found.ages, 0.0))

    def as_shown(self, bound: timedelta) -> Choice | None:
        """What the views show, or what they have in common, if it is within the bound."""
        found = self._together()
        return found if within(found.ages, bound) else None

    # --- what is shown -----------------------------------------------------------------------

    def _rows(self) -> dict[str, ViewRow]:
        rows = {r.name: r for r in self._catalog.views.all()}
        found = {name: rows[name] for name in self._names}
        for row in found.values():
            check_readable(row, row.cn or 0)
        return found

    def _reaching(self) -> dict[str, ViewRow]:
        """The rows as if all that is at hand were shown."""
        deferred = self._catalog.refreshes.all()
        return {n: self._reach(r, reach_of(r, deferred.get(r.id))) for n, r in self._rows().items()}

    def _reach(self, row: ViewRow, upto: int | None) -> ViewRow:
        if upto is None or upto == row.cn:
            return row
        return replace(row, cn=upto, delta_version=self._store(row).delta.version())

    def _together(self) -> Choice:
        """What the views show, at a cn that they have in common."""
        rows = self._rows()
        known = policies([*self._catalog.views.all(), *self._catalog.views.replacements()])
        late = [n for n, r in rows.items() if not known[r.id].shows]
        last = self._catalog.commits.last_cn()
        others = {r.id: r.cn for n, r in rows.items() if n not in late and r.cn is not None}
        common = newest_state(self._catalog.gaps, others, last) if others else None
        if not late:
            assert common is not None or not rows
            return self._known(last if common is None else common, rows, "as published")
        at = {n: r.cn if n in late or common is None else common for n, r in rows.items()}
        stands = {n: cn for n, cn in at.items() if cn is not None}
        valid = {n: self._validity(rows[n], cn) for n, cn in stands.items()}
        if (shared := overlap(valid.values())) is not None:
            cn = min(shared.last(last), max(stands.values()))
            return self._chosen(max(cn, shared.first), rows, stands, "as published", shared)
        if self._allowed.as_published:
            raise _apart(valid)
        return self._carried(max(stands.values()) if common is None else common)

    def _known(self, cn: int, rows: Mapping[str, ViewRow], way: str) -> Choice:
        valid = [self._validity(row, cn) for row in rows.values() if (row.cn or 0) >= cn]
        shared = overlap(valid) if valid else Validity(cn, None)
        return self._chosen(cn, rows, dict.fromkeys(rows, cn), way, shared or Validity(cn, cn + 1))

    def _chosen(
        self,
        cn: int,
        rows: Mapping[str, ViewRow],
        at: Mapping[str, int],
        way: str,
        valid: Validity,
        **more: Any,
    ) -> Choice:
        read = sources_of(self._reads.tables).union(*(self._sources[name] for name in rows))
        if tables := sources_of(self._reads.tables):
            own = validity_of_tables(self._catalog, tables, cn)
            valid = (overlap([valid, own]) if rows else own) or Validity(cn, cn + 1)
        now, shown = self._parts.clock.now_us(), valid.last(self._catalog.commits.last_cn())
        found = ages(self._catalog, read, max(cn, shown), now, self._heard())
        return Choice(cn, rows, at, way, valid, found, **more)

    # --- beyond what is shown ----------------------------------------------------------------

    def _carried(self, cn: int | None, way: str = "carried") -> Choice:
        """All views at the cn, or at all that is committed by now."""
        every = [*self._catalog.views.all(), *self._catalog.views.replacements()]
        forward = forwards(every)
        rows, reaching = self._rows(), self._reaching()
        ways = {n: forward[r.id] for n, r in rows.items()}
        recomputed = tuple(n for n in self._names if ways[n] is Forward.RECOMPUTED)
        moved = [n for n in self._names if ways[n] is not Forward.RECOMPUTED]
        behind = [n for n in moved if cn is None or (reaching[n].cn or 0) < cn]
        read = sources_of(self._reads.tables).union(*self._sources.values())
        before = {n: row.cn or 0 for n, row in rows.items()}
        if behind or cn is None:
            cn = self._carry(CarryWanted(tuple(behind), read, cn))
        for _ in range(_TRIES):
            reaching = self._reaching()
            stands = {reaching[n].id: reaching[n].cn or 0 for n in moved}
            common = newest_state(self._catalog.gaps, stands, cn) if moved else cn
            if common >= cn:
                break
            # a view took several commits in one step meanwhile
            cn = self._carry(CarryWanted(tuple(moved), read))
        shown = {n: reaching[n] for n in moved} | {n: rows[n] for n in recomputed}
        valid = [self._validity(reaching[n], common) for n in moved]
        shared = overlap([*valid, *([Validity(common, None)] if recomputed else [])])
        if shared is None or recomputed:
            shared = Validity(common, self._end(common))
        late = [n for n in moved if ways[n] is Forward.CARRIED]
        carried = tuple(n for n in late if (rows[n].cn or 0) < common)
        brought = {n: before[n] for n in (*behind, *carried, *recomputed) if before[n] < common}
        return self._chosen(
            common,
            shown,
            dict.fromkeys(self._names, common),
            way if behind or carried or recomputed else "as published",
            shared,
            carried=carried,
            recomputed=recomputed,
            cost=cost_of(self._parts, self._reads, brought, common),
        )

    def _fresher(self, bound: timedelta, begun: float) -> Choice:
        """What is within the bound, by waiting or by computing; TooStale if neither may be."""
        if self._allowed.on_stale is OnStale.compensate and not self._allowed.as_published:
            found = self._carried(None, "compensated")
            return replace(found, ages=dict.fromkeys(found.ages, 0.0))
        deadline = begun + self._allowed.patience.total_seconds()
        while True:
            found = self._together()
            if bound and within(found.ages, bound):
                return replace(found, way="waited for")
            waits = self._allowed.on_stale is OnStale.wait and time.monotonic() < deadline
            if not waits:
                raise _too_old(found, bound)
            threading.Event().wait(_LOOK)

    # --- what is known -----------------------------------------------------------------------

    def _store(self, row: ViewRow) -> ViewStore:
        return ViewStore(self._parts.root, row, shape_of(row))

    def _validity(self, row: ViewRow, cn: int) -> Validity:
        deferred = self._catalog.refreshes.all().get(row.id)
        upto = reach_of(self._catalog.views.row(row.id), deferred)
        assert upto is not None
        read = self._sources[row.name]
        return validity(self._catalog, self._store(row), row, max(upto, cn), read, cn)

    def _end(self, cn: int) -> int | None:
        read = frozenset().union(*self._sources.values())
        found = (self._catalog.commits.first_after(source, cn) for source in read)
        return min((c for c in found if c is not None), default=None)


def _apart(found: Mapping[str, Validity]) -> OutsideRetention:
    late = min(found.items(), key=lambda item: item[1].end or 0)
    early = max(found.items(), key=lambda item: item[1].first)
    return OutsideRetention(
        "what the views show has no moment in common",
        detail=f'"{late[0]}" is valid up to before cn {late[1].end}, "{early[0]}" from cn'
        f" {early[1].first} on",
        hint=f"refresh {late[0]}, or ask without --as-published: it is carried for the query",
    )


def _too_old(found: Choice, bound: timedelta) -> TooStale:
    listed = ", ".join(
        f'"{name}" {"was never heard from" if age is None else f"{age:.1f} s"}'
        for name, age in found.ages.items()
    )
    return TooStale(
        f"the answer is older than {bound.total_seconds():g} s",
        detail=f"it may be {oldest(found.ages):.1f} s old; by source: {listed}",
        hint="allow more with --max-staleness, or have it computed: --on-stale compensate",
    )
