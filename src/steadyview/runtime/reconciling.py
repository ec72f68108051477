"""What the catalog's views should be: those of the project's files, over those that they read.

Every plan has a row of the catalog that stands for it: the one that readers see, if that one means
the same and was made of the very rows that stand for what the plan reads; otherwise a replacement,
which is built beside it.

1. What readers see is kept by the plan in the catalog, whatever its file says by now, until another
   row takes its place: while that is built, and while the changed file is refused.
2. Views that read each other take their places together, in one catalog transaction:

       a row that readers see and that is kept  =>  readers see every row that it was made of

   So no view is ever shown over the new rows of one parent and the old rows of another, and all
   views agree at every cn. A view that is kept although its file is refused holds up those that it
   reads; `status` says so.
3. A replacement takes its place when it has come as far as what it replaces: no reader goes back.
4. A view whose file is gone is paused: its rows stay, nobody keeps them, for as long as the project
   retains states. If kept views still read it, it is kept for them.
5. A hidden node lives as long as a row needs it, and is paused with the last view that does.

Everything here can be done again: after a crash at any place, it comes to the same.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

from steadyview.catalog import Catalog, FileChange, ViewRow, ViewSpec
from steadyview.crash_points import crash_point
from steadyview.errors import StorageDamaged
from steadyview.runtime.building import clear_builds
from steadyview.runtime.kept import (
    Kept,
    algorithm_of,
    described,
    goes_on,
    inputs_of,
    is_hidden,
    planned_as_kept,
    shape_of,
    with_parent_renamed,
)
from steadyview.runtime.parts import Parts
from steadyview.runtime.planning import Planned, Refused
from steadyview.warehouse.view_store import Shape, ViewStore

_Method = TypeVar("_Method", bound=Callable[..., Any])
GONE, READER, BUILD = "FILE_GONE", "READER", "BUILD"
"""Why a view's file does not take its place, beside the codes of refused SQL."""


def _one_at_a_time(method: _Method) -> _Method:
    @wraps(method)
    def alone(self: Reconciling, *values: Any, **named: Any) -> Any:
        with self.changing:
            return method(self, *values, **named)

    return cast("_Method", alone)


class Reconciling:
    """The rows of one warehouse's views; the caller holds the lease.

    Used by the thread that works on batches and by the one that builds first states: what changes
    which rows there are is done by one at a time.
    """

    def __init__(self, parts: Parts, plans: Sequence[Planned | Refused]) -> None:
        self._parts = parts
        self._views = parts.catalog.views
        self.changing = threading.RLock()
        self.files = {p.name: p for p in plans if isinstance(p, Planned)}
        """The plans of the files as they are now, each behind those that it reads."""
        self._refused = [p for p in plans if isinstance(p, Refused)]
        self._names = {*self.files, *(r.name for r in self._refused)}
        self._fingerprints = {p.name: p.fingerprint() for p in self.files.values()}
        self._from_catalog: dict[int, tuple[str, Planned | None]] = {}
        self.failed: set[str] = set()
        """Views whose replacement could not be built: not tried again until that is asked for."""

    # --- the project's files -----------------------------------------------------------------

    @_one_at_a_time
    def reconcile(self) -> None:
        """Make the catalog's views those of the project: new, changed, gone and refused ones."""
        self._respell()
        rows = self._views.all()
        self._add_deltas(rows)
        mendable = [r for r in rows if r.state == "stopped" and r.mendable and r.cn is not None]
        self.place({row.name for row in mendable})
        for refused in self._refused:
            self._refuse(refused)
        self.settle()
        self.swap_ready()
        clear_builds(self._parts)

    def _add_deltas(self, rows: Iterable[ViewRow]) -> None:
        """Make the delta of views that were kept as whole states, in a warehouse of before."""
        for row in rows:
            if row.cn is not None and row.delta_version is None:
                ViewStore(self._parts.root, row, shape_of(row)).create()

    @_one_at_a_time
    def place(self, renewed: Collection[str] = ()) -> None:
        """Have a row stand for every plan; those of `renewed` are built anew, if they have rows."""
        placed: dict[str, int | None] = {}
        for plan in self.files.values():
            anew = plan.name in renewed
            placed[plan.name] = self._placed(plan, placed, anew=anew)

    def _placed(
        self, plan: Planned, placed: Mapping[str, int | None], *, anew: bool
    ) -> int | None:
        """The id of the row that stands for the plan; None: there is none for now."""
        row, beside = self._views.find(plan.name), self._beside(plan.name)
        inputs = {n: i for n in plan.parents if (i := placed[n]) is not None}
        goes_on = row is not None and self._continues(row, plan, inputs)
        if plan.name in self.failed and not anew:
            return row.id if row is not None and goes_on else None
        self.failed.discard(plan.name)
        if beside is not None and self._stands_for(beside, plan, inputs):
            self._views.not_taken(plan.name, None, None)
            return beside.id
        self._give_up([beside] if beside else [])
        whole = len(inputs) == len(plan.parents)
        if row is not None and row.cn is not None and not whole:
            return None
        if row is not None and goes_on and not anew:
            self._continue(row, plan, inputs)
            return row.id if whole else None
        if row is not None and row.cn is None:
            self._views.drop(plan.name)
            row = None
        if row is not None:
            self._views.not_taken(plan.name, None, None)
        added = self._added(plan, inputs, beside=row is not None)
        return added if whole else None

    def _added(self, plan: Planned, inputs: Mapping[str, int], *, beside: bool) -> int:
        sql = plan.text.select if plan.text is not None else ""
        kept = described(plan, inputs)
        print_ = self._fingerprints[plan.name]
        spec = ViewSpec(plan.name, sql, plan.level, plan.kind, kept, print_)
        row = self._views.add(spec, self._parts.catalog.commits.last_cn(), beside=beside)
        crash_point("view-added")
        self.store(Kept(row, plan)).create()
        return row.id

    def _beside(self, name: str) -> ViewRow | None:
        return next((r for r in self._views.replacements() if r.name == name), None)

    def _give_up(self, rows: Sequence[ViewRow]) -> None:
        if rows:
            self._views.give_up([row.id for row in rows])
            crash_point("given-up")

    def _means(self, row: ViewRow, plan: Planned) -> bool:
        return row.fingerprint == self._fingerprints[plan.name]

    def _reached(self, row: ViewRow) -> bool:
        """Whether the log reaches back to what the row has."""
        return row.cn is None or row.cn >= self._parts.catalog.commits.oldest_cn()

    def _stands_for(self, row: ViewRow, plan: Planned, inputs: Mapping[str, int]) -> bool:
        """Whether what is built beside is the plan's."""
        same = self._means(row, plan) and algorithm_of(row) == plan.algorithm_name
        return same and inputs_of(row) == inputs and self._reached(row)

    def _continues(self, row: ViewRow, plan: Planned, inputs: Mapping[str, int]) -> bool:
        """Whether what readers see is still the plan's meaning, and the log reaches back to it."""
        if row.state == "refused" or not (self._means(row, plan) and goes_on(row, plan)):
            return False
        if row.cn is not None and inputs_of(row) != inputs:
            return False
        return row.state == "stopped" or self._reached(row)

    def _continue(self, row: ViewRow, plan: Planned, inputs: Mapping[str, int]) -> None:
        if row.state == "stopped" and row.cn is None:
            self._views.build_again(plan.name)
        kept, sql = described(plan, inputs), plan.text.select if plan.text else ""
        if (row.sql, row.level, row.definition) != (sql, plan.level, kept):
            self._views.kept_by(row.id, sql, plan.level, kept)
        if row.paused is not None:
            self._views.resume(plan.name)
        self._views.not_taken(plan.name, None, None)
        self._check_files(Kept(row, plan))

    def _check_files(self, kept: Kept) -> None:
        """Stop a view that has not the files that the catalog knows of."""
        store, row = self.store(kept), kept.row
        if row.cn is None:
            store.create()
            return
        tables = [(store.base, row.base_version), (store.delta, row.delta_version)]
        whole = all(t.exists() and t.version() >= (version or 0) for t, version in tables)
        if not whole and row.state != "stopped":
            text = f'"{store.folder}" was removed or replaced'
            self._views.stop(row.name, str(files_damaged(row.name, text)), None)

    def _refuse(self, refused: Refused) -> None:
        """A refused file: what readers see goes on; a view that has nothing to show is refused."""
        name, code, text = refused.name, refused.refusal.code, str(refused.refusal)
        row = self._views.find(name)
        if name in self.files:
            # another file of this name counts
            self._views.not_taken(name, code, text)
            return
        beside = self._beside(name)
        if beside is not None and (row is None or not self._rebuilds(beside, row)):
            self._give_up([beside])
        if row is not None and row.cn is not None:
            self._views.not_taken(name, code, text)
            if row.paused is not None and self._can_resume(row):
                self._resume(row)
            return
        if row is not None and row.state != "refused":
            self._views.drop(name)
            row = None
        if row is None:
            spec = ViewSpec(name, "", "", "incremental", "", "")
            self._views.add(spec, self._parts.catalog.commits.last_cn())
        self._views.refuse(name, code, text)

    def _rebuilds(self, beside: ViewRow, row: ViewRow) -> bool:
        """Whether what readers see is built anew as it was: that needs no file."""
        rows = {r.id for r in self._views.all()}
        same = beside.fingerprint == row.fingerprint and self._reached(beside)
        return same and rows >= {*inputs_of(beside).values()}

    def _can_resume(self, row: ViewRow) -> bool:
        rows = self._by_id()
        below = [rows.get(i) for i in inputs_of(row).values()]
        return self._reached(row) and all(b is not None and self._can_resume(b) for b in below)

    def _resume(self, row: ViewRow) -> None:
        rows = self._by_id()
        for i in inputs_of(row).values():
            self._resume(rows[i])
        if row.paused is not None:
            self._views.resume(row.name)

    def _respell(self) -> None:
        """A view whose name is spelt with other capitals now is the same view."""
        now = {name.lower(): name for name in self._names}
        for row in self._views.all():
            spelt = now.get(row.name.lower(), row.name)
            if row.name not in self._names and self._views.find(spelt) is None:
                rename_row(self._parts.catalog, row.name, spelt)

    # --- what nobody needs -------------------------------------------------------------------

    @_one_at_a_time
    def settle(self) -> None:
        """Pause the views whose files are gone; drop hidden nodes that no row needs."""
        rows = self._by_id()
        wanted = [r for r in rows.values() if r.name in self._names and r.paused is None]
        needed = _with_inputs(wanted, rows)
        retained = _with_inputs([r for r in rows.values() if not is_hidden(r)], rows)
        for row in rows.values():
            if row.id in needed and row.name in self._names:
                continue
            if row.replacement:
                self._views.give_up([row.id])
            elif row.id in needed and not is_hidden(row):
                readers = [r.name for r in wanted if row.id in _below(r, rows) and not is_hidden(r)]
                text = _gone_but_read(row.name, sorted({*readers}))
                self._views.not_taken(row.name, GONE, text)
            elif row.id not in needed and (row.cn is None or row.id not in retained):
                self._views.drop(row.name)
            elif row.id not in needed and row.paused is None:
                self._views.pause(row.name)
                crash_point("paused")

    # --- taking places -----------------------------------------------------------------------

    @_one_at_a_time
    def swap_ready(self) -> bool:
        """Put what was built beside in its place, where it is ready; whether anything was."""
        beside = {row.name: row for row in self._views.replacements()}
        if not beside:
            return False
        rows = self._by_id()
        shown = {row.name: row for row in rows.values() if not row.replacement}
        swapped = False
        for group in _groups(beside, rows):
            held_up = self._held_up(group, beside, rows)
            if not held_up and all(_ready(beside[n], shown.get(n)) for n in group):
                self._views.swap([beside[n].id for n in group])
                crash_point("swapped")
                swapped = True
        if swapped:
            self.settle()
        return swapped

    def _held_up(
        self, group: Collection[str], beside: Mapping[str, ViewRow], rows: Mapping[int, ViewRow]
    ) -> bool:
        """Whether views that are kept as they were read some of the group; it is told."""
        found = False
        for name in group:
            readers = [r.name for r in _readers(name, rows) if r.name not in beside]
            found = found or bool(readers)
            row = self._views.find(name)
            if readers and row is not None and not is_hidden(row):
                self._views.not_taken(name, READER, _waits_for(readers))
            elif row is not None and row.refusal_code == READER:
                self._views.not_taken(name, None, None)
        return found

    @_one_at_a_time
    def fail(self, kept: Kept, error: str) -> None:
        """What is built beside cannot be built: it is given up, with what is built over it."""
        rows = {row.id: row for row in self._views.replacements()}
        gone = {kept.id}
        while more := {i for i, r in rows.items() if gone & {*inputs_of(r).values()}} - gone:
            gone |= more
        self.failed.add(kept.name)
        self._views.give_up(gone)
        crash_point("given-up")
        for row in (rows[i] for i in gone if i in rows):
            ViewStore(self._parts.root, row, Shape()).remove()
        self.tell(kept, error)

    def tell(self, kept: Kept, error: str) -> None:
        """What is wrong with what is built beside is shown with its view."""
        if self._views.find(kept.name) is not None:
            self._views.not_taken(kept.name, BUILD, error)

    # --- what is kept ------------------------------------------------------------------------

    def running(self) -> list[Kept]:
        """The rows that are kept or being built, with the plans to do it by, by name."""
        rows = self._by_id()
        deferred = self._parts.catalog.refreshes.all()
        going = {r.id for r in rows.values() if r.state in ("building", "active")}
        needed = _with_inputs([r for r in rows.values() if r.name in self._names], rows)
        found = []
        for row in rows.values():
            if row.id not in going & needed:
                continue
            plan = self.plan_of(row)
            inputs = inputs_of(row)
            if plan is not None and inputs.keys() >= {*plan.parents} and rows.keys() >= {
                *inputs.values()
            }:
                ahead = deferred[row.id].propagated if row.id in deferred else -1
                found.append(Kept(row, plan, None if row.cn is None else max(row.cn, ahead)))
        return found

    def plan_of(self, row: ViewRow) -> Planned | None:
        """The plan by which a row is kept: its file's, if that is what the row is."""
        plan = self.files.get(row.name)
        own = plan is not None and self._means(row, plan)
        if plan is not None and own and algorithm_of(row) == plan.algorithm_name:
            return plan
        known = self._from_catalog.get(row.id)
        if known is None or known[0] != row.definition:
            sources = self._parts.catalog.sources
            relations = {s.name: s for x in sources.states() for s in sources.schemas(x.name)}
            known = (row.definition, planned_as_kept(row, relations))
            self._from_catalog[row.id] = known
        return known[1]

    def shown(self) -> dict[str, Planned]:
        """The plans of all that readers see, by name."""
        found = ((row.name, self.plan_of(row)) for row in self._views.all() if row.definition)
        return {name: plan for name, plan in found if plan is not None}

    def store(self, kept: Kept) -> ViewStore:
        """Where a row's data lie."""
        return ViewStore(self._parts.root, kept.row, kept.plan.shape)

    def _by_id(self) -> dict[int, ViewRow]:
        rows = [*self._views.all(), *self._views.replacements()]
        return {row.id: row for row in rows}


def rename_row(catalog: Catalog, old: str, new: str, files: Iterable[FileChange] = ()) -> None:
    """Call a view otherwise in the catalog, also where other rows read it."""
    views = catalog.views
    rows = [*views.all(), *views.replacements()]
    ids = {row.id for row in rows if row.name == old}
    readers = [r for r in rows if ids & {*inputs_of(r).values()}]
    views.rename(old, new, {r.id: with_parent_renamed(r, old, new) for r in readers}, files)


def remove_dropped(parts: Parts) -> None:
    """Remove what lies of dropped views; for a time when nobody reads it."""
    for row in parts.catalog.views.dropped():
        ViewStore(parts.root, row, Shape()).remove()
        parts.catalog.views.remove(row.id)


def files_damaged(view: str, detail: str) -> StorageDamaged:
    """The files of one view are gone or damaged: its trouble alone."""
    return StorageDamaged(
        f'the files of view "{view}" are not those that the catalog knows',
        detail=detail,
        hint=f"restore them from a backup, or run: steadyview view rebuild {view}",
    )


def _with_inputs(found: Iterable[ViewRow], rows: Mapping[int, ViewRow]) -> set[int]:
    """The ids of these rows and of all that they were made of."""
    ids: set[int] = set()
    left = list(found)
    while left:
        row = left.pop()
        if row.id not in ids:
            ids.add(row.id)
            left += [rows[i] for i in inputs_of(row).values() if i in rows]
    return ids


def _below(row: ViewRow, rows: Mapping[int, ViewRow]) -> set[int]:
    """The ids of all that a row was made of."""
    return _with_inputs([row], rows) - {row.id}


def _readers(name: str, rows: Mapping[int, ViewRow]) -> list[ViewRow]:
    """The views that readers see, are kept, and read the one of that name that readers see."""
    ids = {r.id for r in rows.values() if r.name == name and not r.replacement}
    shown = [r for r in rows.values() if r.state == "active" and not is_hidden(r)]
    return [r for r in shown if ids & _below(r, rows)]


def _groups(beside: Mapping[str, ViewRow], rows: Mapping[int, ViewRow]) -> list[set[str]]:
    """The names that must take their places together: those linked by reading, old and new."""
    names = {row.id: name for name, row in beside.items()}
    links = [{n, names[i]} for n, row in beside.items() for i in _below(row, rows) if i in names]
    for name in beside:
        links += [{name, r.name} for r in _readers(name, rows) if r.name in beside]
    groups = [{name} for name in beside]
    for link in links:
        joined = [g for g in groups if g & link]
        groups = [g for g in groups if not g & link] + [set().union(*joined)]
    return groups


def _ready(beside: ViewRow, row: ViewRow | None) -> bool:
    """Whether it has come as far as what readers see."""
    if beside.cn is None:
        return False
    return row is None or row.cn is None or row.state != "active" or beside.cn >= row.cn


def _waits_for(readers: Sequence[str]) -> str:
    names = ", ".join(f'"{name}"' for name in sorted(readers))
    return (
        f"the changed view waits for {names}, which read it and cannot change with it\n"
        "hint: correct their files, or drop them: steadyview view drop NAME"
    )


def _gone_but_read(name: str, readers: Sequence[str]) -> str:
    names = ", ".join(f'"{reader}"' for reader in readers)
    return (
        f'the file of view "{name}" is gone; it is kept because {names} reads it\n'
        f"hint: put the file back, or run: steadyview view drop {name} --cascade"
    )
