"""One batch: every view's change over (a, b], computed in lock step under one moment.

    tag the logs -> rounds of lookups, shared by all views -> one Spark statement per view

A view whose expressions fail on some row stops just before the transaction that brought the row;
the others go on. Nothing here publishes: the results say what is ready to be.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from steadyview.catalog import Base
from steadyview.changes import RelationName, RelationSchema
from steadyview.crash_points import crash_point
from steadyview.engine.analysis import reason
from steadyview.engine.frames import Frames
from steadyview.engine.spark_algebra import Answer, Handle, SparkAlgebra, Sum, Window
from steadyview.engine.statements import delta_sql, fragile, state_sql
from steadyview.engine.tagged_log import Admitted, LogTagger, TaggedLog
from steadyview.maintenance import BatchedSweep, EdgeLookup, FirstState, Record
from steadyview.runtime.conventional import Shadow
from steadyview.runtime.lookups import Lookups
from steadyview.runtime.moment import Moment
from steadyview.runtime.planning import Planned
from steadyview.update_log import UpdateLog
from steadyview.views.join_tree import Edge
from steadyview.warehouse.apply import Applier
from steadyview.warehouse.history import visible_steps
from steadyview.warehouse.states import States
from steadyview.warehouse.view_store import ViewStore

SMALL = 20_000
"""Up to so many log rows a batch writes one file per view."""
_DATA_ERROR = re.compile(
    r"SQLSTATE: (?:22|23|54|P0)\w{3}|\[(?:ARITHMETIC_OVERFLOW|DIVIDE_BY_ZERO|CAST_[A-Z_]+)"
)
"""A value that an expression cannot take (22), a key twice in a map (23), a value too big (54)."""


@dataclass(frozen=True)
class Work:
    """A view's part of a batch: its change after cn `after`, or its first state (`after` None)."""

    plan: Planned
    store: ViewStore
    after: int | None


@dataclass(frozen=True)
class Done:
    """What a view can publish: its state at `upto`; with `error`, it failed at `upto + 1`."""

    work: Work
    upto: int
    delta_version: int
    base: Base | None = None
    error: str | None = None
    changes: int = 0


class Batch:
    """The computation of one batch in its own work folder."""

    def __init__(
        self,
        frames: Frames,
        folder: Path,
        moment: Moment,
        admitted: Mapping[str, Admitted],
        log: UpdateLog,
        shadow: Shadow | None = None,
    ) -> None:
        self._shadow = shadow
        self._frames = frames
        self._folder = folder
        self._moment = moment
        self._admitted = admitted
        self._log = log
        self._logs: dict[RelationName, TaggedLog] = {}
        self.lookups: Lookups | None = None

    def run(self, works: Sequence[Work]) -> list[Done]:
        """Compute and store every view's change; raises only what concerns the whole batch."""
        columns = _columns(works)
        relations = {r.name: r for w in works for r in w.plan.relations}
        after = min((w.after for w in works if w.after is not None), default=self._moment.upto)
        self._logs = self._tag(list(relations.values()), columns, after)
        self.lookups = Lookups(
            self._frames, self._folder, self._moment.snapshots, columns, self._logs
        )
        sweeps = [self._sweep(w, self._algebra(w)) for w in works]
        answers = self._answer_all(sweeps)
        crash_point("answers-stored")
        if self._shadow is not None:
            self._record_shadow(works, answers)
        with ThreadPoolExecutor(max_workers=2) as pool:
            return list(pool.map(self._finish, works, sweeps, answers))

    def _tag(
        self,
        relations: Sequence[RelationSchema],
        columns: Mapping[RelationName, Sequence[int]],
        after: int,
    ) -> dict[RelationName, TaggedLog]:
        """The relations' logs, side by side: most of it is waiting for files and for Spark."""
        tagger = LogTagger(self._frames, self._folder, self._admitted)

        def tagged(relation: RelationSchema) -> TaggedLog:
            admitted = self._admitted[relation.name.source]
            files = self._log.entries(relation.name, admitted.first, admitted.last)
            listed = [(f.path, f.rows) for f in files]
            return tagger.tag(relation, listed, columns[relation.name], after)

        with ThreadPoolExecutor(len(relations), "log") as pool:
            found = pool.map(tagged, relations)
            return {r.name: log for r, log in zip(relations, found, strict=True)}

    def _algebra(self, work: Work) -> SparkAlgebra:
        after = self._moment.upto if work.after is None else work.after
        return SparkAlgebra(self._logs, Window(after, self._moment.upto))

    def _sweep(self, work: Work, algebra: SparkAlgebra) -> _Sweep:
        definition, tree = work.plan.definition, work.plan.tree
        assert definition is not None
        assert tree is not None
        if work.after is None:
            return _Sweep(FirstState(definition, tree, algebra))
        changed = frozenset(
            o.number
            for o in definition.occurrences
            if self._logs[o.relation.name].cn_high > work.after
        )
        return _Sweep(BatchedSweep(definition, tree, algebra, changed))

    def _answer_all(self, sweeps: Sequence[_Sweep]) -> list[dict[Edge, Answer]]:
        """All sweeps move in lock step, so that the lookups of a round are shared."""
        assert self.lookups is not None
        answers: list[dict[Edge, Answer]] = [{} for _ in sweeps]
        while asks := [(i, ask) for i, sweep in enumerate(sweeps) for ask in sweep.take()]:
            found = self.lookups.answer([ask for _, ask in asks])
            for (i, ask), answer in zip(asks, found, strict=True):
                answers[i][ask.edge] = answer
                sweeps[i].tell(ask.edge, answer)
        return answers

    def _record_shadow(
        self, works: Sequence[Work], answers: Sequence[Mapping[Edge, Answer]]
    ) -> None:
        """What the same answers give if nothing compensates them."""
        assert self._shadow is not None
        for work, answered in zip(works, answers, strict=True):
            if work.after is not None:
                change = partial(self._uncompensated, work, answered)
                self._shadow.record(work.plan.name, change, work.after, self._moment.upto)

    def _uncompensated(self, work: Work, answers: Mapping[Edge, Answer]) -> DataFrame:
        sweep = self._sweep(work, self._algebra(work).uncompensated())
        return self._change(work, _replayed(sweep, answers))

    def _finish(self, work: Work, sweep: _Sweep, answers: Mapping[Edge, Answer]) -> Done:
        assert sweep.result is not None
        if work.after is None:
            return self._first(work, sweep.result, answers)
        if not sweep.result.terms:
            return Done(work, self._moment.upto, work.store.delta.version())
        try:
            return self._appended(work, sweep.result, self._moment.upto)
        except PySparkException as error:
            return self._stopped(work, answers, check_data_error(error))

    def _first(self, work: Work, state: Sum, answers: Mapping[Edge, Answer]) -> Done:
        try:
            return self._based(work, state)
        except PySparkException as error:
            check_data_error(error)
        try:
            return self._based(work, self._replayed(work, answers, self._moment.upto))
        except PySparkException as error:
            text = reason(check_data_error(error))
            return Done(work, self._moment.upto, 0, error=text)

    def _based(self, work: Work, state: Sum) -> Done:
        definition = work.plan.definition
        assert definition is not None
        sql = state_sql(definition, work.plan.types, state)
        base = Applier(self._frames.spark, work.store).first(sql, self._moment.upto)
        return Done(work, self._moment.upto, work.store.delta.version(), base)

    def _change(self, work: Work, change: Sum) -> DataFrame:
        assert work.plan.definition is not None
        return self._frames.spark.sql(delta_sql(work.plan.definition, work.plan.types, change))

    def _appended(self, work: Work, change: Sum, upto: int) -> Done:
        assert work.after is not None
        if fragile(work.plan.definition):
            self._show(work, change)
        rows = sum(self._logs[r.name].rows for r in work.plan.relations)
        files = 1 if rows <= SMALL else None
        added = work.store.append(self._change(work, change), work.after, upto, files)
        return Done(work, upto, added.version, changes=added.rows)

    def _stopped(self, work: Work, answers: Mapping[Edge, Answer], error: PySparkException) -> Done:
        """Find the first cn whose change cannot be computed; keep what comes before it.

        Searched with every evaluated row one that really existed: the failing statement may have
        met a row that was cancelled out.
        """
        assert work.after is not None

        def change(upto: int) -> Sum:
            return self._replayed(work, answers, upto)

        failing = first_failing(
            lambda upto: self._fails(work, change(upto)), work.after + 1, self._moment.upto
        )
        if failing is None:
            return self._appended(work, change(self._moment.upto), self._moment.upto)
        if failing == work.after + 1:
            return Done(work, work.after, work.store.delta.version(), error=reason(error))
        done = self._appended(work, change(failing - 1), failing - 1)
        return replace(done, error=reason(error))

    def _replayed(self, work: Work, answers: Mapping[Edge, Answer], upto: int) -> Sum:
        return _replayed(self._sweep(work, self._algebra(work).narrowed(upto)), answers)

    def _show(self, work: Work, change: Sum) -> None:
        """Compute the visible rows at each cn of the batch, to see whether that can be done."""
        assert work.plan.definition is not None
        assert work.after is not None
        states, store = States(self._frames.spark, work.store), work.store
        before = states.states_sql(store.newest_base(), work.after, store.delta.version())
        delta = f"({delta_sql(work.plan.definition, work.plan.types, change)})"
        steps = visible_steps(self._frames, store, delta, before)
        shown = self._frames.spark.sql(f"SELECT _row FROM ({steps}) WHERE _cn > 0")
        shown.write.format("noop").mode("overwrite").save()

    def _fails(self, work: Work, change: Sum) -> bool:
        try:
            self._change(work, change).write.format("noop").mode("overwrite").save()
            if fragile(work.plan.definition):
                self._show(work, change)
        except PySparkException as error:
            check_data_error(error)
            return True
        return False


class _Sweep:
    """A state machine with its open asks; holds the result once it is there."""

    def __init__(self, machine: BatchedSweep[Handle] | FirstState[Handle]) -> None:
        self._machine = machine
        self._asks: list[EdgeLookup[Handle]] = []
        self.result: Sum | None = None
        self._act(machine.begin())

    def take(self) -> list[EdgeLookup[Handle]]:
        """The asks that wait for an answer, each handed out once."""
        asks, self._asks = self._asks, []
        return asks

    def tell(self, edge: Edge, answer: Answer) -> None:
        self._act(self._machine.answered(edge, answer))

    def _act(self, actions: Sequence[EdgeLookup[Handle] | Record[Handle]]) -> None:
        for action in actions:
            if isinstance(action, Record):
                self.result = action.change
            else:
                self._asks.append(action)


def _replayed(sweep: _Sweep, answers: Mapping[Edge, Answer]) -> Sum:
    """The result of a sweep that gets the answers of an earlier one."""
    while asks := sweep.take():
        for ask in asks:
            sweep.tell(ask.edge, answers[ask.edge])
    assert sweep.result is not None
    return sweep.result


def first_failing(fails: Callable[[int], bool], low: int, high: int) -> int | None:
    """The smallest n in low..high for which `fails` holds (once failing, failing for all larger).

    >>> first_failing(lambda n: n >= 7, 1, 100), first_failing(lambda n: False, 1, 100)
    (7, None)
    """
    if not fails(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fails(middle) else (middle + 1, high)
    return low


def check_data_error(error: PySparkException) -> PySparkException:
    """The error itself if the data caused it; otherwise raise what it is."""
    if not _DATA_ERROR.search(str(error)):
        raise error
    return error


def _columns(works: Sequence[Work]) -> dict[RelationName, tuple[int, ...]]:
    """Per relation, the columns that any view of the batch uses (at least one: rows must count)."""
    used: dict[RelationName, set[int]] = {}
    for work in works:
        assert work.plan.definition is not None
        for occurrence in work.plan.definition.occurrences:
            used.setdefault(occurrence.relation.name, set()).update(occurrence.columns)
    return {name: tuple(sorted(columns or {0})) for name, columns in used.items()}
