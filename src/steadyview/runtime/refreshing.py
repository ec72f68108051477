"""Refreshes: deferred views are brought to one cn, and shown there together.

Views that are asked for take along what they read and is behind. All of them are computed up to the
target first, each to where it stands plus its change; then one catalog transaction shows them all:

    a refresh to c  =>  every view that it names is shown at c, or none of them moves

So views of any policies agree after it, at a moment that somebody chose. What is computed and not
shown when something fails in between stays in the change tables, and is not computed again.

A view is never shown beyond what it reads: a child follows its parents' refreshes. Nothing goes
back: a target behind what a view shows is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

from steadyview.engine.tagged_log import Admitted
from steadyview.errors import ConfigError, DefiniteError, OutsideRetention, ViewStopped
from steadyview.nearest import nearest_or_all
from steadyview.query.moment import Moment, WaitFor, open_moment
from steadyview.runtime.kept import Kept, is_hidden, schedule_of
from steadyview.runtime.losses import Losses
from steadyview.runtime.parts import Parts
from steadyview.runtime.policies import Policy
from steadyview.runtime.publisher import Publisher
from steadyview.runtime.reconciling import Reconciling
from steadyview.runtime.schedule import WorkSchedule
from steadyview.runtime.state_kept import check_no_gap
from steadyview.runtime.targets import Target
from steadyview.runtime.trouble import Faults
from steadyview.runtime.work import Done, Standing, Work


@dataclass(frozen=True)
class RefreshWanted:
    """Which views, or all of them, and to which cn; None: all that is committed by now."""

    views: tuple[str, ...] = ()
    everything: bool = False
    to: int | None = None


@dataclass(frozen=True)
class CarryWanted:
    """Changes of which views are to be at hand up to a cn; None: all that is committed by now.

    `sources`: of these, besides those of the views.
    """

    views: tuple[str, ...] = ()
    sources: frozenset[str] = frozenset()
    to: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"views": [*self.views], "sources": sorted(self.sources), "to": self.to}

    @staticmethod
    def of(found: Mapping[str, Any]) -> CarryWanted:
        """Back from JSON."""
        return CarryWanted(tuple(found["views"]), frozenset(found["sources"]), found["to"])


@dataclass(frozen=True)
class Refreshed:
    """Where the views are now, and which others were taken along as they read them."""

    cn: int
    views: tuple[str, ...]
    along: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @staticmethod
    def of(found: Mapping[str, Any]) -> Refreshed:
        """Back from JSON."""
        return Refreshed(found["cn"], tuple(found["views"]), tuple(found["along"]))

    def at(self, time: datetime, target: Target | None = None) -> ShownAt:
        """With the commit time of the cn, and what was asked for."""
        return ShownAt(self.cn, self.views, self.along, time=time, target=target)


@dataclass(frozen=True)
class ShownAt(Refreshed):
    """The same with the cn's commit time. `target`: the moment that was asked for, if it was."""

    time: datetime = field(kw_only=True)
    target: Target | None = field(default=None, kw_only=True)


class Advance(Protocol):
    """How changes are computed."""

    def __call__(
        self, rows: Sequence[Kept], moment: Moment, standing: Standing
    ) -> tuple[list[Done], dict[str, Admitted]]:
        """Compute and store the rows' changes up to the moment's cn; publish nothing."""


class Refreshing:
    """Refreshes the views of one warehouse; used by the thread of batches alone."""

    def __init__(
        self,
        parts: Parts,
        project: Reconciling,
        schedule: WorkSchedule,
        losses: Losses,
        faults: Faults,
    ) -> None:
        self._parts = parts
        self._project = project
        self._schedule = schedule
        self._losses = losses
        self._faults = faults

    def refreshed(self, wanted: RefreshWanted, ways: Ways) -> Refreshed:
        """Do it; an error says what is wrong with which view, and nothing has moved then."""
        names = [k.name for k in self._chosen(wanted)]
        with open_moment(self._sources(names), ways.wait_for, self._parts.catalog) as moment:
            # what a loss may have touched is shown by nobody
            self._losses.stop_lost(self._project.running())
            self._losses.examine(moment.snapshots)
            to = moment.upto if wanted.to is None else wanted.to
            rows = self._chosen(wanted)
            _check_known(to, moment)
            return self._shown_at(rows, moment.at(to, {}), ways)

    def carried(self, wanted: CarryWanted, ways: Ways) -> int:
        """Have the changes of views at hand up to a cn; which one that is.

        What does not show every commit by itself shows what it did: a query can read the rest.
        """
        views = RefreshWanted(wanted.views)
        sources = {s.name: s for s in self._sources([k.name for k in self._chosen(views)])}
        sources |= {name: self._parts.sources[name] for name in wanted.sources}
        with open_moment(sources.values(), ways.wait_for, self._parts.catalog) as moment:
            self._losses.stop_lost(self._project.running())
            self._losses.examine(moment.snapshots)
            to = moment.upto if wanted.to is None else wanted.to
            _check_known(to, moment)
            rows = [k for k in self._chosen(views) if k.plan.node is not None]
            behind = [k for k in self._with_parents(rows, to) if (k.propagated or 0) < to]
            if behind:
                found, admitted = ways.advance(behind, moment.at(to, {}), ways.standing)
                _check_arrived(found, to)
                policies = self._schedule.policies()
                held = [replace(d, work=_held(d.work, policies)) for d in found]
                ways.publisher.publish(held, admitted)
            return to

    def scheduled(self, available: frozenset[str], ways: Ways) -> bool:
        """Refresh the views whose schedule has a new tick, those of one target together."""
        due = self._due(available)
        for (target, tick), rows in sorted(due.items(), key=lambda item: item[0]):
            self._at_tick(target, [k.name for k in rows], ways)
            self._parts.catalog.refreshes.ticked([k.id for k in rows], tick)
        return bool(due)

    # --- who is due --------------------------------------------------------------------------

    def _due(self, available: frozenset[str]) -> dict[tuple[int, int], list[Kept]]:
        """Views by the time that they are to show, and the tick at which that became due."""
        now, zone = self._parts.clock.now_us(), self._parts.project.timezone
        known = self._parts.catalog.refreshes.all()
        gates = {gate.time for gate in self._parts.catalog.gates.open()}
        found: dict[tuple[int, int], list[Kept]] = {}
        if not self._parts.watch.agrees():
            return found
        for kept in self._deferred():
            schedule, target = schedule_of(kept.row, zone)
            tick = schedule.latest(now)
            last = known[kept.id].tick if kept.id in known else None
            if tick is None or tick <= max(last or 0, kept.row.begun):
                continue
            ready = {n.name for n in self._sources([kept.name])} <= available
            if target(tick) in gates:
                # what the time means is not known before it is bound
                continue
            if ready and not self._faults.waits(kept.label):
                found.setdefault((target(tick), tick), []).append(kept)
        return found

    def _at_tick(self, target: int, names: Sequence[str], ways: Ways) -> None:
        running = {k.name: k for k in self._project.running()}
        shown = {n: running[n] for n in names if n in running}
        try:
            cn = self._parts.catalog.commits.cn_at(target)
            shown = {n: kept for n, kept in shown.items() if (kept.row.cn or 0) < cn}
            if shown:
                self.refreshed(RefreshWanted(tuple(shown), to=cn), ways)
        except DefiniteError as error:
            # a time that is forgotten concerns nobody who shows more
            for name in (n for n, kept in shown.items() if self._shows_before(kept, target)):
                self._parts.catalog.views.tell(name, str(error))

    def _shows_before(self, kept: Kept, target: int) -> bool:
        """Whether a commit may have come between what the view shows and the target."""
        try:
            return self._parts.catalog.commits.time_of(kept.row.cn or 0) < target
        except OutsideRetention:
            return True

    def _deferred(self) -> list[Kept]:
        """The views that wait for refreshes, as they stand."""
        known = self._schedule.policies()
        return [k for k in self._views() if not known[k.id].shows and not k.row.replacement]

    def _views(self) -> list[Kept]:
        running = self._project.running()
        return [k for k in running if k.row.cn is not None and not is_hidden(k.row)]

    def _chosen(self, wanted: RefreshWanted) -> list[Kept]:
        """The views that are asked for; ConfigError or ViewStopped for one that cannot be."""
        views = {k.name.lower(): k for k in self._views() if not k.row.replacement}
        known = self._schedule.policies()
        if wanted.everything:
            found = [k for k in views.values() if not k.plan.forced]
            return [k for k in found if wanted.to is None or not self._follows(k, known)]
        chosen = [views.get(n.lower()) or self._missing(n, views) for n in wanted.views]
        for kept in chosen:
            if kept.plan.forced:
                raise _not_deferred(kept.name, "is kept by an algorithm of its own")
            if wanted.to is not None and self._follows(kept, known):
                raise _not_deferred(kept.name, "is immediate: it shows every commit by itself")
        return chosen

    def _follows(self, kept: Kept, known: Mapping[int, Policy]) -> bool:
        """Whether it shows every commit by itself: so does all that it reads."""
        running = {k.id: k for k in self._project.running()}
        read = [running[i] for i in kept.inputs.values() if i in running]
        return known[kept.id].shows and all(self._follows(k, known) for k in read)

    def _missing(self, name: str, views: Mapping[str, Kept]) -> Kept:
        row = next(
            (r for r in self._parts.catalog.views.all() if r.name.lower() == name.lower()), None
        )
        if row is None or is_hidden(row):
            names = [k.name for k in views.values()]
            raise ConfigError(f'there is no view "{name}"', hint=nearest_or_all(name, names))
        why = row.error or "it has no first state yet: steadyview run builds it"
        raise ViewStopped(f'view "{row.name}" cannot be refreshed: it is {row.state}', detail=why)

    # --- doing it ----------------------------------------------------------------------------

    def _sources(self, names: Iterable[str]) -> list[Any]:
        """All sources that these views read, themselves or over others."""
        running = {k.id: k for k in self._project.running()}
        left = [k for k in running.values() if k.name in names]
        found: set[str] = set()
        while left:
            kept = left.pop()
            found |= kept.plan.sources
            left += [running[i] for i in kept.inputs.values() if i in running]
        return [self._parts.sources[name] for name in sorted(found)]

    def _shown_at(self, rows: Sequence[Kept], moment: Moment, ways: Ways) -> Refreshed:
        cn = moment.upto
        for kept in rows:
            if (kept.row.cn or 0) > cn:
                raise _goes_back(kept, cn)
        with_parents = self._with_parents(rows, cn)
        at_hand = {k.id: self._at_hand(k) for k in with_parents}
        behind = [k for k in with_parents if at_hand[k.id] < cn]
        self._check_states(with_parents, at_hand, cn)
        done = [self._as_it_is(k, cn) for k in with_parents if at_hand[k.id] >= cn]
        stores = {d.work.kept.id: d.work.store for d in done}

        def standing(node: int) -> Any:
            return (stores[node], cn) if node in stores else ways.standing(node)

        found, admitted = ways.advance(behind, moment, standing)
        _check_arrived(found, cn)
        ways.publisher.publish([*done, *found], admitted)
        named = {k.id for k in rows}
        along = (k.name for k in with_parents if k.id not in named and not is_hidden(k.row))
        return Refreshed(cn, tuple(k.name for k in rows), tuple(sorted(along)))

    def _with_parents(self, rows: Sequence[Kept], cn: int) -> list[Kept]:
        """The rows that do not show cn yet, with all of what they read that does not."""
        running = {k.id: k for k in self._project.running()}
        found: dict[int, Kept] = {}
        left = [k for k in rows if (k.row.cn or 0) < cn]
        while left:
            kept = left.pop()
            if kept.id not in found:
                found[kept.id] = kept
                read = [running.get(i) for i in kept.inputs.values()]
                if missing := [n for n, k in zip(kept.inputs, read, strict=True) if k is None]:
                    raise _stands_still(kept, missing[0])
                left += [k for k in read if k is not None and (k.row.cn or 0) < cn]
        return sorted(found.values(), key=lambda k: k.name)

    def _at_hand(self, kept: Kept) -> int:
        """Up to which cn its changes are stored, also by a refresh that was cut short."""
        return max(kept.propagated or 0, self._project.store(kept).propagated())

    def _check_states(self, rows: Sequence[Kept], at_hand: Mapping[int, int], cn: int) -> None:
        """OutsideRetention if the cn lies where one of them, or what it reads, has no state."""
        views = self._parts.catalog.views
        for kept in rows:
            if at_hand[kept.id] >= cn:
                check_no_gap(self._parts.catalog, kept.row, cn, at_hand[kept.id])
        going = {k.id for k in rows}
        for kept in rows:
            for parent in (views.row(i) for i in kept.inputs.values() if i not in going):
                check_no_gap(self._parts.catalog, parent, cn)

    def _as_it_is(self, kept: Kept, cn: int) -> Done:
        """What is propagated already needs only to be shown."""
        store = self._project.store(kept)
        return Done(Work(kept, store, cn), cn, store.delta.version())


def _held(work: Work, policies: Mapping[int, Policy]) -> Work:
    """The work whose change is stored, and shown if its row shows every commit by itself."""
    return replace(work, held=not policies[work.kept.id].shows)


@dataclass(frozen=True)
class Ways:
    """What a refresh needs of those who keep the views."""

    wait_for: WaitFor
    standing: Standing
    advance: Advance
    publisher: Publisher


def _check_known(cn: int, moment: Moment) -> None:
    if cn > moment.newest:
        raise OutsideRetention(
            f"there is no commit {cn} yet",
            detail=f"the newest one is {moment.newest}",
            hint="wait for it with --wait, or refresh to now",
        )


def _check_arrived(found: Iterable[Done], cn: int) -> None:
    """The first error; nothing is shown then."""
    for done in found:
        name = done.work.kept.name
        if done.error is not None:
            raise ViewStopped(
                f'view "{name}" cannot be refreshed to cn {cn}',
                detail=done.error,
                hint="no view was moved; mend the value at its source, or refresh to an earlier cn",
            )
        if done.fault is not None:
            raise done.fault
        if done.upto < cn:
            raise ViewStopped(
                f'view "{name}" cannot be refreshed to cn {cn}',
                detail=f"what it reads has no state there; it could come to cn {done.upto}",
            )


def _goes_back(kept: Kept, cn: int) -> DefiniteError:
    return OutsideRetention(
        f'view "{kept.name}" cannot be refreshed to cn {cn}',
        detail=f"it shows cn {kept.row.cn} already, and no view goes back",
        hint=f'read the earlier state: steadyview query "SELECT * FROM {kept.name}" --at {cn}',
    )


def _stands_still(kept: Kept, parent: str) -> DefiniteError:
    return ViewStopped(
        f'view "{kept.name}" cannot be refreshed',
        detail=f'it reads "{parent}", which is not kept now',
        hint="steadyview status says why",
    )


def _not_deferred(name: str, why: str) -> ConfigError:
    return ConfigError(
        f'view "{name}" cannot be refreshed to an earlier moment',
        detail=f"it {why}",
        hint="leave it out, or give it a policy: TBLPROPERTIES ('steadyview.policy' = 'dpda')",
    )
