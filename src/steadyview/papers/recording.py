"""What a view showed during a run, written down so that its consistency can be judged.

    relations      their rows at the cn where the recording starts: the sources as they are at the
                   end of the run, taken back by the update log (as for `verify`)
    transactions   everything admitted from there to the cn where the view stands at the end
    states         of a view kept at every cn: one per cn that changed it. Of a view kept by an
                   algorithm of the papers: one per install, also those that are never published

For views small enough to be judged in memory. Only the columns that the view uses are written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import groupby

import pyarrow as pa

from steadyview.algebra import Bag, Row
from steadyview.catalog import Catalog
from steadyview.changes import RelationSchema
from steadyview.changes.types import COUNT, SEQ
from steadyview.checking import History, Relation, Transaction
from steadyview.engine.frames import Frames
from steadyview.errors import ConfigError
from steadyview.papers.live import LiveWarehouse, ShownView
from steadyview.query.as_of import RelationsAsOf
from steadyview.query.moment import Moment, WaitFor, admitted_since, open_moment
from steadyview.warehouse.states import States
from steadyview.warehouse.view_store import ViewStore

ROWS = 10_000
TRANSACTIONS = 5_000
_VALUES = (int, Decimal, str, bool, type(None))


class Recording:
    """The installs of one view while a run, or several, work on it."""

    def __init__(self, view: str) -> None:
        self.view = view
        self.start: int | None = None
        """The cn of the first state; None: that of the view's first state ever."""
        self.lookups = 0
        """Query messages sent for it; those of a batch are shared with other views."""
        self.by_installs = False
        """Whether an algorithm of the papers kept it, whose states are its installs."""
        self.installs: list[pa.Table] = []
        self._kept = 0
        self._whole = True

    def begins(self, cn: int) -> None:
        """The view stands at cn; what an algorithm before did beyond that is forgotten."""
        self.start = cn if self.start is None else self.start
        del self.installs[self._kept :]
        self._whole = self._whole or self._kept < TRANSACTIONS

    def installed(self, change: pa.Table) -> None:
        """The view's algorithm changed it. Too many are told at the end: the run goes on."""
        if len(self.installs) < TRANSACTIONS:
            self.installs.append(change)
        else:
            self._whole = False

    def durable(self, waiting: int) -> None:
        """The installs so far are durable, but for the last ones, so many, that wait."""
        self._kept = len(self.installs) - waiting

    @property
    def states(self) -> Sequence[pa.Table]:
        """The installs that became durable; ConfigError if some are missing."""
        if not self._whole:
            raise _too_large(self.view, f"more than {TRANSACTIONS} states")
        return self.installs[: self._kept]


class Recordings:
    """Those of one run, by view."""

    def __init__(self, recordings: Iterable[Recording] = ()) -> None:
        self._by_view = {recording.view: recording for recording in recordings}

    def of(self, view: str) -> Recording | None:
        """The recording of the view; None if it is not recorded."""
        return self._by_view.get(view)

    def begin(self, catalog: Catalog) -> None:
        """Those of views that have a state begin there."""
        for name, recording in self._by_view.items():
            row = catalog.views.find(name)
            if row is not None and row.cn is not None:
                recording.begins(row.cn)

    def asked(self, view: str, questions: int) -> None:
        """A batch of which the view was a part sent so many questions."""
        if view in self._by_view:
            self._by_view[view].lookups += questions


def recorded(
    parts: LiveWarehouse, view: ShownView, recording: Recording, wait_for: WaitFor
) -> History:
    """The history from the recording's start to where the view stands; ConfigError if too large."""
    row = parts.catalog.views.get(view.name)
    start = row.start_cn if recording.start is None else recording.start
    upto = row.cn if row.cn is not None else start
    if start < row.start_cn:
        raise ConfigError(f'view "{view.name}" was built anew while it was recorded')
    if upto - start > TRANSACTIONS:
        raise _too_large(view.name, f"{upto - start} transactions, of at most {TRANSACTIONS}")
    frames = Frames(parts.spark)
    sources = [parts.sources[s] for s in view.sources]
    try:
        with (
            parts.work_folder("record") as folder,
            open_moment(sources, wait_for, parts.catalog) as moment,
        ):
            as_of = RelationsAsOf(frames, folder, parts.log, start)
            relations = _relations(parts, view, moment, start, as_of)
            states = _States(parts, view)
            installs = recording.states if recording.by_installs else None
            shown = states.all(start, upto, installs)
    finally:
        frames.drop()
    return History(view.select, relations, _transactions(parts, view, start, upto), shown)


def _relations(
    parts: LiveWarehouse, view: ShownView, moment: Moment, cn: int, as_of: RelationsAsOf
) -> dict[str, Relation]:
    found = {}
    for relation in view.relations:
        source = relation.name.source
        admitted = admitted_since(source, moment, cn, parts.catalog, parts.log)
        name = as_of.view(
            relation,
            _columns(view, relation),
            moment.snapshots[source],
            admitted,
        )
        rows = parts.spark.sql(f"SELECT * FROM {name} LIMIT {ROWS + 1}").toArrow()
        if rows.num_rows > ROWS:
            raise _too_large(view.name, f'"{relation.name}" has more than {ROWS} rows')
        names = tuple(relation.columns[i].name for i in _columns(view, relation))
        found[_name(relation)] = Relation(source, names, _bag(_tuples(rows, view)))
    return found


def _columns(view: ShownView, relation: RelationSchema) -> list[int]:
    used = view.uses[relation.name]
    return [i for i, c in enumerate(relation.columns) if c.name in used] or [0]


def _transactions(
    parts: LiveWarehouse, view: ShownView, start: int, upto: int
) -> list[Transaction]:
    """By cn; those that changed nothing of the view's relations are left out."""
    found: dict[int, tuple[str, dict[str, Bag[Row]]]] = {}
    for run in parts.catalog.commits.runs(start + 1, upto):
        for relation in view.relations:
            if relation.name.source != run.source:
                continue
            names = [f"c{i}" for i in _columns(view, relation)]
            log = parts.log.rows(relation.name, run.seq_from, run.seq_to)
            rows = zip(
                log[SEQ].to_pylist(),
                _tuples(log.select(names), view),
                log[COUNT].to_pylist(),
                strict=True,
            )
            for seq, group in groupby(rows, key=lambda r: r[0]):
                bag = Bag((row, count) for _, row, count in group)
                cn = run.cn_from + seq - run.seq_from
                changes = found.setdefault(cn, (f"{run.source}:{seq}", {}))[1]
                if len(bag):
                    changes[_name(relation)] = bag
    return [Transaction(name, changes) for _, (name, changes) in sorted(found.items()) if changes]


class _States:
    """The view's states, one after another."""

    def __init__(self, parts: LiveWarehouse, view: ShownView) -> None:
        self._parts, self._view = parts, view
        self._row = parts.catalog.views.get(view.name)
        self._store = ViewStore(parts.root, self._row, view.shape)

    def all(self, start: int, upto: int, installs: Sequence[pa.Table] | None) -> list[Bag[Row]]:
        """The state at cn `start`, and after every install (None: after every cn) up to `upto`."""
        spark, views = self._parts.spark, self._parts.catalog.views
        bases = views.bases(self._row.id)
        first = States(spark, self._store).visible(self._row, bases, start).toArrow()
        if first.num_rows > ROWS:
            raise _too_large(self._view.name, f"the view has more than {ROWS} rows")
        states = [_bag(_tuples(first, self._view))]
        delta = self._delta(start, upto) if installs is None else self._numbered(installs)
        for change in self._changes(delta):
            states.append(states[-1] + change)
        return states

    def _delta(self, start: int, upto: int) -> pa.Table:
        states = States(self._parts.spark, self._store)
        changed = states.changed_sql(start, upto, self._row.delta_version or 0)
        if changed is None:
            return self._numbered([])
        return self._parts.spark.sql(f"SELECT * FROM {changed} ORDER BY _cn").toArrow()

    def _numbered(self, installs: Sequence[pa.Table]) -> pa.Table:
        """The installs' changes, tagged with their numbers instead of a cn."""
        tables = [
            table.append_column("_cn", pa.array([i] * table.num_rows, pa.int64()))
            for i, table in enumerate(installs, 1)
            if table.num_rows
        ]
        return pa.concat_tables(tables) if tables else pa.table({"_cn": pa.array([], pa.int64())})

    def _changes(self, delta: pa.Table) -> Iterable[Bag[Row]]:
        if not delta.num_rows:
            return
        names = [name for name, _ in self._store.shape.stored]
        rows = zip(
            delta["_cn"].to_pylist(),
            _tuples(delta.select(names), self._view),
            delta[COUNT].to_pylist(),
            strict=True,
        )
        for _, group in groupby(rows, key=lambda r: r[0]):
            yield Bag((row, count) for _, row, count in group)


def _bag(rows: Iterable[Row]) -> Bag[Row]:
    return Bag.of(rows)


def _tuples(table: pa.Table, view: ShownView) -> list[Row]:
    """Rows of values that a history can hold."""
    if not table.num_columns:
        return [()] * table.num_rows
    columns = [column.to_pylist() for column in table.columns]
    return [_checked(row, view) for row in zip(*columns, strict=True)]


def _checked(row: Row, view: ShownView) -> Row:
    for value in row:
        if not isinstance(value, _VALUES):
            raise ConfigError(
                f'view "{view.name}" cannot be recorded: {value!r} is a {type(value).__name__}',
                detail="a history holds whole numbers, decimals, texts, booleans and NULL",
            )
    return row


def _name(relation: RelationSchema) -> str:
    if any("." in part for part in (relation.name.source, *relation.name.path)):
        raise ConfigError(f'table "{relation.name}" has a dot in its name and cannot be recorded')
    return str(relation.name)


def _too_large(view: str, what: str) -> ConfigError:
    return ConfigError(
        f'view "{view}" is too large to be recorded',
        detail=what,
        hint="a history is judged in memory: record a small view for a short time",
    )
