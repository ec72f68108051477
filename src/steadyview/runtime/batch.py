"""One batch: every view's change over (a, b], computed in lock step under one moment.

    tag the logs -> rounds of lookups, shared by all views -> piece by piece, one statement per view

Tagging and lookups are done once for the whole batch: a piece (a, u] is a narrower window over the
same answers and logs, whose rows after u compensate as ever. Whatever goes wrong in a view's own
part, its lookups included, concerns that view: its expressions fail on some row, and it stops just
before the transaction that brought the row; or the fault is ours, and it stays where it is. The
others go on. Nothing here publishes: the results say what is ready to be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from pyspark.sql import DataFrame

from steadyview.catalog import Base
from steadyview.changes import RelationName, RelationSchema
from steadyview.crash_points import crash_point
from steadyview.engine.failures import SparkError, is_data_error, reason
from steadyview.engine.frames import Frames
from steadyview.engine.spark_algebra import Answer, Handle, SparkAlgebra, Sum, Window
from steadyview.engine.statements import delta_sql, state_sql
from steadyview.engine.tagged_log import Admitted, LogTagger, TaggedLog
from steadyview.errors import StorageDamaged
from steadyview.maintenance import BatchedSweep, EdgeLookup, FirstState, Record
from steadyview.runtime.conventional import Shadow
from steadyview.runtime.lookups import Lookups
from steadyview.runtime.moment import Moment
from steadyview.runtime.pieces import PieceSize, Steps, merged
from steadyview.runtime.planning import Planned
from steadyview.runtime.trouble import Trouble, trouble
from steadyview.update_log import UpdateLog
from steadyview.views.join_tree import Edge
from steadyview.warehouse.apply import Applier
from steadyview.warehouse.history import check_added, check_shown
from steadyview.warehouse.view_store import ViewStore

_T = TypeVar("_T")
SMALL = 20_000
"""Up to so many log rows a batch writes one file per view."""


@dataclass(frozen=True)
class Work:
    """A view's part of a batch: its change after cn `after`, or its first state (`after` None)."""

    plan: Planned
    store: ViewStore
    after: int | None


@dataclass(frozen=True)
class Done:
    """What a view can publish: its state at `upto`.

    With `error` it failed at `upto + 1` and stops (`mendable`: by values at the source); with
    `fault`, of ours, it is to be tried again.
    """

    work: Work
    upto: int
    delta_version: int
    base: Base | None = None
    error: str | None = None
    fault: Exception | None = None
    changes: int = 0
    mendable: bool = False

    @property
    def failed(self) -> bool:
        """Whether the view did not get as far as it should."""
        return self.error is not None or self.fault is not None


@dataclass(frozen=True)
class Asked:
    """Lookups sent to sources, and the rows of their answers."""

    sent: int = 0
    rows: int = 0


@dataclass
class _Share:
    """A view's part in a batch, as far as it is: what it asked and was answered."""

    work: Work
    sweep: _Sweep | None = None
    answers: dict[Edge, Answer] = field(default_factory=dict)
    trouble: Trouble | None = None
    over: bool = False

    @property
    def asks(self) -> list[EdgeLookup[Handle]]:
        return self.sweep.take() if self.sweep is not None and self.trouble is None else []


class Batch:
    """The computation of one batch in its own work folder: `prepare` first, then its pieces."""

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
        self._shares: list[_Share] = []
        self._steps: Steps | None = None
        self._lookups: Lookups | None = None

    @property
    def upto(self) -> int:
        """The batch's end."""
        return self._moment.upto

    @property
    def asked(self) -> Asked:
        """What was asked of the sources."""
        sent = self._lookups
        return Asked(sent.sent, sent.rows) if sent is not None else Asked()

    def prepare(self, works: Sequence[Work]) -> None:
        """Tag the logs and ask the sources; raises only what concerns the whole batch."""
        self._shares = [_Share(w) for w in works]
        columns = _columns(works)
        relations = {r.name: r for w in works for r in w.plan.relations}
        after = min((w.after for w in works if w.after is not None), default=self._moment.upto)
        self._tag_all(list(relations.values()), columns, after)
        self._lookups = Lookups(
            self._frames, self._folder, self._moment, columns, self._logs
        )
        for share in self._shares:
            share.sweep = self._for(share, partial(self._begun, share.work))
        self._answer_all()
        crash_point("answers-stored")
        if self._shadow is not None:
            self._record_shadow()

    def _for(self, share: _Share, step: Callable[[], _T]) -> _T | None:
        """A step of one view; where it fails, or failed before, the view has its trouble."""
        if share.trouble is not None:
            return None
        try:
            return step()
        except Exception as error:  # noqa: BLE001 - sorted by `trouble`
            share.trouble = trouble(error, self._frames.spark, share.work.store.folder)
            return None

    # --- what is shared ----------------------------------------------------------------------

    def _tag_all(
        self,
        relations: Sequence[RelationSchema],
        columns: Mapping[RelationName, Sequence[int]],
        after: int,
    ) -> None:
        """The relations' logs; one that is damaged is the trouble of the views that read it."""
        tagged = self._tag(relations, columns, after)
        self._logs = {n: log for n, log in tagged.items() if isinstance(log, TaggedLog)}
        damage = {n: error for n, error in tagged.items() if isinstance(error, StorageDamaged)}
        for share in self._shares:
            for relation in share.work.plan.relations:
                if relation.name in damage:
                    share.trouble = Trouble(error=str(damage[relation.name]))

    def _tag(
        self,
        relations: Sequence[RelationSchema],
        columns: Mapping[RelationName, Sequence[int]],
        after: int,
    ) -> dict[RelationName, TaggedLog | StorageDamaged]:
        """Side by side: most of it is waiting for files and for Spark."""
        tagger = LogTagger(self._frames, self._folder, self._admitted)

        def tagged(relation: RelationSchema) -> TaggedLog | StorageDamaged:
            admitted = self._admitted[relation.name.source]
            if relation.name in self._moment.stored:
                return tagger.tag(relation, [], columns[relation.name], after)
            try:
                files = self._log.entries(relation.name, admitted.first, admitted.last)
                listed = [(f.path, f.rows) for f in files]
                return tagger.tag(relation, listed, columns[relation.name], after)
            except StorageDamaged as error:
                return error

        with ThreadPoolExecutor(len(relations), "log") as pool:
            found = pool.map(tagged, relations)
            return {r.name: log for r, log in zip(relations, found, strict=True)}

    def _answer_all(self) -> None:
        """All sweeps move in lock step, so that the lookups of a round are shared."""
        assert self._lookups is not None
        while asks := [(share, ask) for share in self._shares for ask in share.asks]:
            found = self._lookups.answer([ask for _, ask in asks])
            for (share, ask), answer in zip(asks, found, strict=True):
                share.answers[ask.edge] = answer
                assert share.sweep is not None
                self._for(share, partial(share.sweep.tell, ask.edge, answer))

    def _record_shadow(self) -> None:
        """What the same answers give if nothing compensates them."""
        assert self._shadow is not None
        for share in self._shares:
            work = share.work
            if work.after is not None and share.trouble is None:
                change = partial(self._uncompensated, work, share.answers)
                self._shadow.record(work.plan.name, change, work.after, self._moment.upto)

    def _uncompensated(self, work: Work, answers: Mapping[Edge, Answer]) -> DataFrame:
        algebra = self._algebra(work, self._moment.upto).uncompensated()
        return self._change(work, _replayed(self._sweep(work, algebra), answers))

    # --- pieces ------------------------------------------------------------------------------

    def next_piece(self, after: int, size: PieceSize) -> tuple[int, int]:
        """How many log rows the next piece after cn `after` has, and its last cn.

        Nothing is looked at where the whole batch is one piece.
        """
        rows = sum(log.rows for log in self._logs.values())
        if self._steps is None and size.fits(rows):
            return rows, self.upto
        if self._steps is None:
            self._steps = merged([Steps(*log.per_cn()) for log in self._logs.values()])
        left = self._steps.after(after)
        upto = size.end(left, self.upto)
        return int(left.rows.sum() - left.after(upto).rows.sum()), upto

    def first_states(self) -> Iterator[Done]:
        """The state at the moment's cn of every view that has none yet, as each gets ready."""
        with ThreadPoolExecutor(max_workers=2) as pool:
            begun = [pool.submit(self._finished, s, self._moment.upto) for s in self._shares]
            try:
                for one in as_completed(begun):
                    yield one.result()
            finally:
                for one in begun:
                    one.cancel()

    def piece(self, upto: int) -> list[Done]:
        """Compute and store every view's change up to cn `upto`, of views that are not there yet.

        Pieces ascend; a view that failed in one is in no later one.
        """
        behind = [s for s in self._shares if not s.over and (s.work.after or 0) < upto]
        with ThreadPoolExecutor(max_workers=2) as pool:
            done = list(pool.map(partial(self._finished, upto=upto), behind))
        for share, found in zip(behind, done, strict=True):
            share.over = found.failed
            share.work = replace(share.work, after=found.upto)
        return done

    @property
    def over(self) -> bool:
        """Whether no view goes on."""
        return all(share.over for share in self._shares)

    def _finished(self, share: _Share, upto: int) -> Done:
        return self._for(share, lambda: self._finish(share, upto)) or self._failed(share)

    def _failed(self, share: _Share) -> Done:
        work, found = share.work, share.trouble
        assert found is not None
        upto = self._moment.upto if work.after is None else work.after
        version = work.store.delta.version()
        return Done(
            work, upto, version, error=found.error, fault=found.fault, mendable=found.mendable
        )

    def _finish(self, share: _Share, upto: int) -> Done:
        work = share.work
        if work.after is None:
            return self._first(share)
        change = self._swept(share, upto)
        if not change.terms:
            return Done(work, upto, work.store.delta.version())
        try:
            return self._appended(work, change, upto)
        except Exception as error:
            if not is_data_error(error):
                raise
            return self._stopped(share, upto, error)

    def _swept(self, share: _Share, upto: int) -> Sum:
        """The change of the piece; the batch's own where it is the only one."""
        assert share.sweep is not None
        assert share.sweep.result is not None
        if upto == self._moment.upto and share.sweep.after == share.work.after:
            return share.sweep.result
        algebra = self._algebra(share.work, upto).replaying()
        return _replayed(self._sweep(share.work, algebra), share.answers)

    def _begun(self, work: Work) -> _Sweep:
        return self._sweep(work, self._algebra(work, self._moment.upto))

    def _algebra(self, work: Work, upto: int) -> SparkAlgebra:
        after = self._moment.upto if work.after is None else work.after
        return SparkAlgebra(self._logs, Window(after, upto))

    def _sweep(self, work: Work, algebra: SparkAlgebra) -> _Sweep:
        definition, tree = work.plan.definition, work.plan.tree
        assert definition is not None
        assert tree is not None
        if work.after is None:
            return _Sweep(FirstState(definition, tree, algebra), None)
        window = algebra.window
        changed = frozenset(
            o.number
            for o in definition.occurrences
            if self._logs[o.relation.name].touched(window.after, window.upto)
        )
        return _Sweep(BatchedSweep(definition, tree, algebra, changed), work.after)

    def _first(self, share: _Share) -> Done:
        assert share.sweep is not None
        assert share.sweep.result is not None
        try:
            return self._based(share.work, share.sweep.result)
        except SparkError as error:
            if not is_data_error(error):
                raise
        # once more with every evaluated row one that really is there
        return self._based(share.work, self._careful(share, self._moment.upto))

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
        files = 1 if self._rows_of(work, upto) <= SMALL else None
        check = partial(check_added, self._frames, work.store, work.after)
        added = work.store.append(self._change(work, change), work.after, upto, check, files)
        return Done(work, upto, added.version, changes=added.rows)

    def _rows_of(self, work: Work, upto: int) -> int:
        """About how many log rows of the piece the view reads."""
        logs = [self._logs[r.name] for r in work.plan.relations]
        assert work.after is not None
        return sum(log.rows_within(work.after, upto) for log in logs)

    # --- a view that fails -------------------------------------------------------------------

    def _stopped(self, share: _Share, upto: int, error: Exception) -> Done:
        """Find the first cn whose change cannot be computed; keep what comes before it.

        Searched with every evaluated row one that really existed: the failing statement may have
        met a row that was cancelled out.
        """
        work = share.work
        assert work.after is not None
        failing = first_failing(
            lambda end: self._fails(work, self._careful(share, end)), work.after + 1, upto
        )
        if failing is None:
            return self._appended(work, self._careful(share, upto), upto)
        if failing == work.after + 1:
            version = work.store.delta.version()
            return Done(work, work.after, version, error=reason(error), mendable=True)
        done = self._appended(work, self._careful(share, failing - 1), failing - 1)
        return replace(done, error=reason(error), mendable=True)

    def _careful(self, share: _Share, upto: int) -> Sum:
        algebra = self._algebra(share.work, upto).careful()
        return _replayed(self._sweep(share.work, algebra), share.answers)

    def _fails(self, work: Work, change: Sum) -> bool:
        definition = work.plan.definition
        assert definition is not None
        assert work.after is not None
        if not change.terms:
            return False
        try:
            self._change(work, change).write.format("noop").mode("overwrite").save()
            if definition.grouping is not None:
                delta = f"({delta_sql(definition, work.plan.types, change)})"
                check_shown(self._frames, work.store, work.after, delta)
        except SparkError as error:
            if not is_data_error(error):
                raise
            return True
        return False


class _Sweep:
    """A state machine with its open asks; holds the result once it is there."""

    def __init__(
        self, machine: BatchedSweep[Handle] | FirstState[Handle], after: int | None
    ) -> None:
        self._machine = machine
        self.after = after
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


def _columns(works: Sequence[Work]) -> dict[RelationName, tuple[int, ...]]:
    """Per relation, the columns that any view of the batch uses (at least one: rows must count)."""
    used: dict[RelationName, set[int]] = {}
    for work in works:
        assert work.plan.definition is not None
        for occurrence in work.plan.definition.occurrences:
            used.setdefault(occurrence.relation.name, set()).update(occurrence.columns)
    return {name: tuple(sorted(columns or {0})) for name, columns in used.items()}
