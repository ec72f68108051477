"""A view kept by an algorithm of the papers, on live databases: the same object as in a simulator.

The object gets messages (`deliveries`), its asks are answered (`answering`), its installs become
durable here. What it keeps in memory may be lost at any moment: a new object starts from the
published state, and what was admitted after it is delivered again. So

    the published state at cn c is the object's state after the messages up to c, and nothing else

which is why only installs that are `whole` are published, one cn each; the change of an install
between two of them goes with the next whole one, or when nothing is left to do.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import pyarrow as pa

from steadyview.catalog import Published
from steadyview.crash_points import crash_point
from steadyview.engine.frames import Frames
from steadyview.maintenance.events import Action, Algorithm, Ask, Install, Read
from steadyview.maintenance.fitting import keys_shown
from steadyview.maintenance.positions import Positions
from steadyview.papers.answering import Answering
from steadyview.papers.deliveries import Deliveries
from steadyview.papers.live import ForcedPlan, LiveWarehouse
from steadyview.papers.recording import Recording
from steadyview.papers.spark_view_algebra import SparkViewAlgebra
from steadyview.papers.view_handles import Handle, Storage, stored_rows
from steadyview.query.moment import WaitFor
from steadyview.warehouse.states import States, nearest
from steadyview.warehouse.view_store import NodeChange, ViewStore, quoted


class ForcedView:
    """One view, one object of its algorithm, from the view's published state on. Close it."""

    def __init__(
        self,
        parts: LiveWarehouse,
        plan: ForcedPlan,
        wait_for: WaitFor,
        recording: Recording | None = None,
    ) -> None:
        self.lookups = 0
        """Query messages sent."""
        self.changes = 0
        """Rows added to the view delta."""
        self._parts, self._plan = parts, plan
        self._views = parts.catalog.views
        self._recording = recording
        self._store = ViewStore(parts.root, self._views.row(plan.id), plan.shape)
        self._closing = ExitStack()
        frames = Frames(parts.spark)
        folder = self._closing.enter_context(parts.work_folder("batch"))
        self._closing.callback(frames.drop)
        self._storage = Storage(frames, folder)
        self._algebra = self._made_algebra()
        self._pending: list[Handle] = []
        """Changes of installs that are not published."""
        adopt(parts, plan)
        self._object = self._made_object()
        self._deliveries = Deliveries(parts, plan, self._algebra, self.cn)
        self._answering = Answering(parts, plan, self._algebra, self._storage, wait_for)
        self._asks: deque[Ask[Handle] | Read] = deque()
        if recording is not None:
            recording.by_installs = True
            recording.begins(self.cn)

    def close(self) -> None:
        """Forget the object and what it holds."""
        self._closing.close()

    @property
    def cn(self) -> int:
        """Where the published view stands."""
        return self._views.row(self._plan.id).cn or 0

    def work(self, target: int, seconds: float | None = None) -> None:
        """Until the view stands at cn `target` or later, or the time is over."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while self.cn < target and (deadline is None or time.monotonic() < deadline):
            self._step()
            self._storage.tidy()

    def _step(self) -> None:
        """One ask, or one message; with nothing to do, everything that came is in the view."""
        if self._asks:
            self._answer(self._asks.popleft())
            return
        update = self._deliveries.next()
        if update is None:
            upto = self._deliveries.fetch()
            update = self._deliveries.next()
            if update is None:
                self._rest(upto)
                return
        self._act(self._object.received(update))

    def _answer(self, ask: Ask[Handle] | Read) -> None:
        """Everything that the answer shows is delivered before it."""
        self.lookups += 1
        if self._recording is not None:
            self._recording.lookups += 1
        answer = self._answering.answer(ask)
        for update in self._deliveries.all_upto(answer.upto):
            self._act(self._object.received(update))
        self._act(self._object.answered(ask.query, answer.handles))

    def _rest(self, upto: int) -> None:
        """Nothing is open: let a periodic algorithm act, or publish how far the view is."""
        actions = self._object.ticked()
        if actions:
            self._act(actions)
            return
        changes, self._pending = self._pending, []
        self._publish([(upto, changes)], upto)

    def _act(self, actions: Sequence[Action[Handle]]) -> None:
        """Asks wait for their turn; whole installs become durable, all of one call together."""
        ready: list[tuple[int, list[Handle]]] = []
        for action in actions:
            if not isinstance(action, Install):
                self._asks.append(action)
                continue
            self._pending.append(self._algebra.materialized(action.change))
            if self._recording is not None:
                self._recording.installed(stored_rows(self._pending[-1]))
            if action.whole:
                ready.append((self._deliveries.cn_of(action.upto), self._pending))
                self._pending = []
        if ready:
            self._publish(ready, ready[-1][0])

    def _publish(self, changes: Sequence[tuple[int, list[Handle]]], cn: int) -> None:
        """Append the changes, each tagged with its cn, and make the view stand at `cn`."""
        tables = [
            table.append_column("_cn", pa.array([at] * table.num_rows, pa.int64()))
            for at, handles in changes
            if handles and (table := stored_rows(self._net(handles))).num_rows
        ]
        version = self._store.delta.version()
        if tables:
            added = self._store.append(NodeChange(pa.concat_tables(tables)), cn)
            version = added.version
            self.changes += added.rows
            self._record_durable()
        _stand_at(self._parts, self._plan, cn, version)
        self._record_durable()

    def _record_durable(self) -> None:
        """All installs but those that wait will be there, whatever happens now."""
        if self._recording is not None:
            self._recording.durable(len(self._pending))

    def _net(self, handles: Sequence[Handle]) -> Handle:
        return self._algebra.materialized(self._algebra.add(handles))

    def _made_algebra(self) -> SparkViewAlgebra:
        plan = self._plan
        keys = keys_shown(plan.definition) or ()
        types = [type_ for _, type_ in plan.shape.visible]
        return SparkViewAlgebra(plan.definition, plan.tree, types, self._storage, keys)

    def _made_object(self) -> Algorithm[Handle]:
        plan = self._plan
        positions = Positions.of_view(plan.definition, plan.tree)
        view = self._view_rows()
        if plan.holds_view:
            self._algebra.materialized(view)
        return plan.make(positions, self._algebra, view, keys_shown(plan.definition) is not None)

    def _view_rows(self) -> Handle:
        """The view's rows as they are published, with their stored names."""
        row, shape = self._views.row(self._plan.id), self._store.shape
        assert row.cn is not None
        base = nearest(self._views.bases(row.id), row.cn)
        states = States(self._parts.spark, self._store)
        version = row.delta_version or 0
        files = [
            *self._store.base.files(base.version),
            *self._store.delta_files(version, base.cn, row.cn),
        ]
        named = ", ".join(f"{quoted(n)} AS c{i}" for i, (n, _) in enumerate(shape.visible))
        sql = f"SELECT {named}, 1L AS _count FROM ({states.rows_sql(base, row.cn, version)})"
        return self._algebra.view_rows(sql, sum(f.rows for f in files))


def adopt(parts: LiveWarehouse, plan: ForcedPlan) -> None:
    """Publish an append that was cut off from being published: its last cn is whole."""
    row = parts.catalog.views.row(plan.id)
    if row.cn is None:
        return
    store = ViewStore(parts.root, row, plan.shape)
    if (cn := store.propagated()) > row.cn:
        _stand_at(parts, plan, cn, store.delta.version())


def _stand_at(parts: LiveWarehouse, plan: ForcedPlan, cn: int, version: int) -> None:
    row = parts.catalog.views.row(plan.id)
    assert row.base_cn is not None
    assert row.base_version is not None
    if (cn, version) != (row.cn, row.delta_version):
        parts.catalog.views.publish(
            [Published(row.id, cn, version, row.base_cn, row.base_version)]
        )
        crash_point("published")


@dataclass(frozen=True)
class Effort:
    """What was done for a view: query messages sent, rows added to its delta."""

    messages: int
    changes: int


class ForcedViews:
    """The objects at work, one per view; an object that failed is forgotten."""

    def __init__(self, parts: LiveWarehouse, wait_for: WaitFor) -> None:
        self._parts, self._wait_for = parts, wait_for
        self._running: dict[int, ForcedView] = {}

    def work(
        self, plan: ForcedPlan, recording: Recording | None, target: int, seconds: float | None
    ) -> Effort:
        """See `ForcedView.work`."""
        if plan.id not in self._running:
            self._running[plan.id] = ForcedView(self._parts, plan, self._wait_for, recording)
        view = self._running[plan.id]
        before = view.lookups, view.changes
        try:
            view.work(target, seconds)
        except BaseException:
            self._running.pop(plan.id).close()
            raise
        return Effort(view.lookups - before[0], view.changes - before[1])

    def forget_others(self, ids: Collection[int]) -> None:
        """Forget the objects of views that are not these."""
        for view in [i for i in self._running if i not in ids]:
            self._running.pop(view).close()

    def close(self) -> None:
        """Forget them all."""
        while self._running:
            self._running.popitem()[1].close()
