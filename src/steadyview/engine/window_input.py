"""One input over the window of a batch: its logged change, the answers about it, its versions.

An input is a relation of a source or another node. Answers come by key, or whole; only keys that
were not asked for before are asked, and an input that was read whole is never asked again. Versions
are made once for the same columns and window, whoever needs them: few rows in Arrow, many by Spark.

An input has a twin for nodes that take a window in one step. Both share what is asked; the twin's
versions are made of a log in which all of the window happens at its end.

Where all nodes together asked for many rows, a node goes on with a *narrowed* input: the rows that
it asked for itself. So a node that reads a relation whole does not make the others' rows many.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from steadyview.changes import arrow_type
from steadyview.engine.frames import Frames, new_file
from steadyview.engine.local_rows import LOCAL_ROWS
from steadyview.engine.versions_sql import AnswerView, versions_sql
from steadyview.plans.hot_keys import key_counts, summed
from steadyview.plans.moves import CN, FROM, TO, VERSION
from steadyview.plans.versions import COUNT, Logged, Reply, in_one_step, versions

ARROW_LIMIT = 200_000
"""Up to so many rows may pass the driver (law 1)."""
REFLECTED = "_reflected"


@dataclass(frozen=True)
class Rows:
    """Rows in memory, or in files."""

    table: pa.Table | None = None
    paths: tuple[str, ...] = ()
    count: int = 0

    @staticmethod
    def of(table: pa.Table) -> Rows:
        """Rows at hand."""
        return Rows(table, (), table.num_rows)

    def values(self, column: int) -> pa.ChunkedArray:
        """One column."""
        name = f"c{column}"
        if self.table is not None:
            return self.table.column(name)
        read = [pq.read_table(path, columns=[name])[name] for path in self.paths]
        return pa.chunked_array([chunk for column in read for chunk in column.chunks])

    def type_of(self, name: str) -> pa.DataType:
        """That of a column, as it is stored."""
        schema = self.table.schema if self.table is not None else pq.read_schema(self.paths[0])
        return schema.field(name).type


Fetch = Callable[[int | None, pa.Array | None], Rows]
"""All rows, or those with one of the values in a column: as the input shows them, once for all."""


@dataclass
class _Answer:
    rows: Rows
    column: int | None = None
    keys: pa.Array | None = None


@dataclass
class WindowInput:
    """An input; `types` are those of the columns that anybody reads, by number.

    `log` has these columns, `_count`, `_cn` and `_reflected`: whether answers show the change.
    """

    frames: Frames
    folder: Path
    types: Mapping[int, str]
    log: Rows
    fetch: Fetch
    _answers: list[_Answer] = field(default_factory=list)
    _known: dict[int, pa.Array] = field(default_factory=dict)
    _views: dict[tuple[tuple[int, ...], int, int, bool, int], str] = field(default_factory=dict)
    _tables: dict[tuple[tuple[int, ...], int, int, int], pa.Table] = field(default_factory=dict)
    _files: dict[str, list[str]] = field(default_factory=dict)
    """Where the versions lie that Spark made, by the view's name."""
    _counted: dict[tuple[str, tuple[int, ...]], pa.Table] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)
    _in_one_step: bool = False
    _twin: WindowInput | None = None

    def in_one_step(self) -> WindowInput:
        """The twin, whose windows have no states but those at their start and their end."""
        if self._twin is None:
            self._twin = replace(
                self, _views={}, _tables={}, _files={}, _counted={}, _in_one_step=True
            )
        return self._twin

    def narrowed(self, asked: Sequence[tuple[int | None, pa.Array | None]]) -> WindowInput:
        """The input of a node that asked for these keys by column; itself where that is no less."""
        if self.log.count + self.answered_rows() <= LOCAL_ROWS or any(k is None for _, k in asked):
            return self
        keys: dict[int, list[pa.Array]] = {}
        for column, some in asked:
            assert column is not None
            keys.setdefault(column, []).append(as_key(some, self.types[column]))
        wanted = {c: pc.unique(pa.concat_arrays(some)) for c, some in keys.items()}
        own: list[_Answer] = []
        left = ARROW_LIMIT - self.log.count
        for column, some in wanted.items():
            found = self._answered(column, some, left)
            left -= found.num_rows
            if left < 0:
                return self
            own.append(_Answer(Rows.of(found), column, some))
        return replace(
            self, _answers=own, _views={}, _tables={}, _files={}, _counted={}, _twin=None
        )

    def _answered(self, column: int, keys: pa.Array, most: int) -> pa.Table:
        """The answered rows with one of the keys, which were asked for; few more than `most`."""
        name = f"c{column}"
        whole = [a for a in self._answers if a.column is None]
        answers = whole or [a for a in self._answers if a.column == column]
        found = [self._empty()]
        for answer in answers:
            found.append(_few_having(answer.rows, name, keys, most, found[0].schema))
            most -= found[-1].num_rows
            if most < 0:
                break
        return pa.concat_tables(found)

    def _empty(self) -> pa.Table:
        stored = [(f"c{i}", arrow_type(t)) for i, t in self.types.items()]
        return pa.schema(stored).empty_table()

    @property
    def asks(self) -> int:
        """The same number for an input and its twin: who asks one has asked both."""
        return id(self._answers)

    def touched(self, after: int, upto: int) -> bool:
        """Whether anything is logged in (after, upto]."""
        cn = self.cns()
        return bool(((cn > after) & (cn <= upto)).any())

    def cns(self) -> np.ndarray:
        """The cn of every logged row."""
        if self.log.table is not None:
            found: np.ndarray = self.log.table.column(CN).to_numpy()
            return found
        read = [pq.read_table(p, columns=[CN])[CN].to_numpy() for p in self.log.paths]
        return np.concatenate([np.zeros(0, np.int64), *read])

    def logged(self, after: int, upto: int) -> Rows | None:
        """The logged rows of (after, upto]; more, where there are many; None if there are none."""
        if not self.touched(after, upto):
            return None
        if self.log.table is None:
            return self.log
        cn = self.log.table.column(CN).to_numpy()
        return Rows.of(self.log.table.filter(pa.array((cn > after) & (cn <= upto))))

    def ask(self, column: int | None, keys: pa.Array | None) -> int:
        """Have these rows answered for; how many questions that took (none or one)."""
        with self._lock:
            if self._whole:
                return 0
            if column is None or keys is None:
                return self._asked(None, None)
            wanted = as_key(keys, self.types[column])
            if column in self._known:
                wanted = wanted.filter(pc.invert(pc.is_in(wanted, self._known[column])))
            if not len(wanted):
                return 0
            if len(wanted) > ARROW_LIMIT:
                return self._asked(None, None)
            known = self._known.get(column)
            self._known[column] = wanted if known is None else pa.concat_arrays([known, wanted])
            return self._asked(column, wanted)

    @property
    def _whole(self) -> bool:
        return any(a.column is None for a in self._answers)

    def _asked(self, column: int | None, keys: pa.Array | None) -> int:
        self._answers.append(_Answer(self.fetch(column, keys), column, keys))
        return 1

    def answered_rows(self) -> int:
        """How many rows the answers have."""
        return sum(a.rows.count for a in self._answers)

    def seen(self, column: int | None, keys: pa.Array | None) -> list[Rows]:
        """The rows that were answered for, and the logged ones that belong to them."""
        found = [a.rows for a in self._answers if a.column is None or a.column == column]
        found.append(self.log)
        if column is None or keys is None:
            return [rows for rows in found if rows.count]
        wanted = as_key(keys, self.types[column])
        return [part for rows in found if (part := _having(rows, column, wanted)).count]

    def versions(
        self, columns: Sequence[int], after: int, upto: int, *, compensated: bool = True
    ) -> str:
        """A temporary view of the versions of the columns over (after, upto]."""
        key = (tuple(columns), after, upto, compensated, len(self._answers))
        with self._lock:
            if key not in self._views:
                small = self.log.count + self.answered_rows() <= ARROW_LIMIT
                make = self._by_arrow if small else self._by_spark
                self._views[key] = make(columns, after, upto, compensated=compensated)
            return self._views[key]

    def table(self, columns: Sequence[int], after: int, upto: int) -> pa.Table:
        """The versions in Arrow; for few rows."""
        with self._lock:
            return self._table(columns, after, upto)

    def key_counts(
        self, used: Sequence[int], columns: Sequence[int], after: int, upto: int
    ) -> pa.Table:
        """How often values occur in some columns of the versions of `used`; see `hot_keys`.

        Of many rows, file by file: only different keys are held at a time.
        """
        view = self.versions(used, after, upto)
        key = (view, tuple(columns))
        with self._lock:
            if key not in self._counted:
                self._counted[key] = self._key_counts(view, used, columns, (after, upto))
            return self._counted[key]

    def _key_counts(
        self, view: str, used: Sequence[int], columns: Sequence[int], window: tuple[int, int]
    ) -> pa.Table:
        names = [f"c{i}" for i in columns]
        if view not in self._files:
            return key_counts(self._table(used, *window), names)
        stored = [(f"c{i}", arrow_type(self.types[i])) for i in columns]
        schema = pa.schema([*stored, (FROM, pa.int64()), (TO, pa.int64())])
        read = ds.dataset(self._files[view], schema=schema, format="parquet").to_batches()
        parts = [key_counts(pa.table(batch), names) for batch in read]
        return summed(pa.concat_tables([key_counts(schema.empty_table(), names), *parts]), names)

    def _table(self, columns: Sequence[int], after: int, upto: int) -> pa.Table:
        key = (tuple(columns), after, upto, len(self._answers))
        if key not in self._tables:
            log = _in_memory(self.log)
            reflected = log.column(REFLECTED).to_numpy(zero_copy_only=False).astype(bool)
            self._tables[key] = self._made(columns, log, reflected, after, upto)
        return self._tables[key]

    def _made(
        self, columns: Sequence[int], log: pa.Table, reflected: np.ndarray, after: int, upto: int
    ) -> pa.Table:
        replies = [
            Reply(
                _in_memory(a.rows),
                reflected,
                None if a.column is None else f"c{a.column}",
                a.keys,
            )
            for a in self._answers
        ]
        logged = Logged(log)
        if self._in_one_step:
            logged = in_one_step(logged, after, upto)
        return versions([f"c{i}" for i in columns], logged, replies, after, upto)

    def _by_arrow(self, columns: Sequence[int], after: int, upto: int, *, compensated: bool) -> str:
        if compensated:
            found = self._table(columns, after, upto)
        else:
            log = _in_memory(self.log)
            found = self._made(columns, log, log.column(CN).to_numpy() <= after, after, upto)
        listed = [*self._listed(columns), *((v, "BIGINT") for v in VERSION)]
        return self.frames.few("versions", found, listed, self.folder)

    def _by_spark(self, columns: Sequence[int], after: int, upto: int, *, compensated: bool) -> str:
        every = self._listed(sorted(self.types))
        log = None
        if self.log.count:
            count = "INT" if self.log.type_of(COUNT) == pa.int32() else "BIGINT"
            logged = [*every, (COUNT, count), (CN, "BIGINT"), (REFLECTED, "BOOLEAN")]
            log = self._view(self.log, logged)
            if not compensated:
                names = ", ".join(n for n, _ in logged[:-1])
                sql = f"SELECT {names}, {CN} <= {after} AS {REFLECTED} FROM {log}"
                log = self.frames.query("log", sql)
            if self._in_one_step:
                inside = f"CASE WHEN {CN} > {after} AND {CN} <= {upto} THEN {upto}L ELSE {CN} END"
                names = ", ".join(n for n, _ in [*every, (COUNT, count)])
                sql = f"SELECT {names}, {inside} AS {CN}, {REFLECTED} FROM {log}"
                log = self.frames.query("log", sql)
        answers = []
        for answer in self._answers:
            keys = None
            if answer.column is not None and answer.keys is not None:
                type_ = self.types[answer.column]
                keys = self._view(Rows.of(pa.table({"k": answer.keys})), [("k", type_)])
            column = None if answer.column is None else f"c{answer.column}"
            answers.append(AnswerView(self._view(answer.rows, every), column, keys))
        sql = versions_sql([f"c{i}" for i in columns], log, answers, after, upto)
        path = new_file(self.folder, "versions")
        self.frames.sql(sql).write.mode("overwrite").parquet(str(path))
        listed = [*self._listed(columns), *((v, "BIGINT") for v in VERSION)]
        paths = sorted(str(p) for p in path.glob("*.parquet"))
        view = self.frames.parquet("versions", paths, _ddl(listed))
        self._files[view] = paths
        return view

    def _view(self, rows: Rows, columns: Sequence[tuple[str, str]]) -> str:
        if rows.table is None:
            return self.frames.parquet("rows", list(rows.paths), _ddl(columns))
        return self.frames.few("rows", rows.table, columns, self.folder)

    def _listed(self, columns: Sequence[int]) -> list[tuple[str, str]]:
        return [(f"c{i}", self.types[i]) for i in columns]


class ArrowKeys:
    """Sets of keys in Arrow, for `plans.asking`; rows are lists of `Rows`."""

    def values(self, rows: Sequence[list[Rows]], column: int) -> pa.Array:
        """The values of a column, each once, without NULL."""
        parts = [part.values(column) for some in rows for part in some]
        return _distinct([pc.unique(p) for p in parts])

    def union(self, sets: Sequence[pa.Array]) -> pa.Array:
        """All values, each once."""
        return _distinct(list(sets))

    def unsent(self, keys: pa.Array, sent: pa.Array | None) -> pa.Array | None:
        """The keys that are not among those sent; None if there are none."""
        if sent is not None and len(sent):
            keys, sent = _alike([keys, sent])
            keys = keys.filter(pc.invert(pc.is_in(keys, sent)))
        return keys if len(keys) else None


def _distinct(parts: list[pa.Array]) -> pa.Array:
    filled = [p for p in parts if len(p)]
    if not filled:
        return pa.nulls(0)
    found = pc.unique(pa.concat_arrays(_alike(filled)))
    return found.drop_null()


def _alike(parts: list[pa.Array]) -> list[pa.Array]:
    """Arrays of one type: whole numbers and decimals of different sizes are widened."""
    types = {p.type for p in parts if not pa.types.is_null(p.type)}
    if len(types) <= 1:
        kind = next(iter(types), pa.null())
        return [p.cast(kind) for p in parts]
    if all(pa.types.is_integer(t) for t in types):
        return [p.cast(pa.int64()) for p in parts]
    digits = max(t.precision - t.scale for t in types)
    scale = max(t.scale for t in types)
    return [p.cast(pa.decimal128(digits + scale, scale)) for p in parts]


def as_key(values: pa.Array, type_: str) -> pa.Array:
    """The values in a column's own type; those that cannot be there are left out."""
    wanted = arrow_type(type_)
    if values.type == wanted or pa.types.is_null(values.type):
        return values.cast(wanted)
    if pa.types.is_integer(wanted):
        bits = wanted.bit_width - 1
        wide = values.cast(pa.int64())
        fits = pc.and_(pc.greater_equal(wide, -(2**bits)), pc.less_equal(wide, 2**bits - 1))
        return wide.filter(fits).cast(wanted)
    return _exact_decimals(values, wanted)


def _exact_decimals(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Decimals that the wanted type holds exactly."""
    kept = []
    for value in values.to_pylist():
        try:
            kept.append(pa.scalar(value, type=wanted))
        except pa.ArrowInvalid:
            continue
    return pa.array([k.as_py() for k in kept], type=wanted)


def _having(rows: Rows, column: int, keys: pa.Array) -> Rows:
    """Those with one of the keys; all of them where they are in files."""
    if rows.table is None:
        return rows
    found = pc.is_in(rows.table.column(f"c{column}"), value_set=keys, skip_nulls=True)
    return Rows.of(rows.table.filter(found))


def _few_having(
    rows: Rows, column: str, keys: pa.Array, most: int, schema: pa.Schema
) -> pa.Table:
    """Those with one of the keys; of many no more than one above `most`."""
    if rows.table is not None:
        found = pc.is_in(rows.table.column(column), value_set=keys, skip_nulls=True)
        return rows.table.filter(found).select(schema.names).cast(schema)
    read = ds.dataset(list(rows.paths), schema=schema, format="parquet")
    return read.head(most + 1, filter=pc.field(column).isin(keys))


def _in_memory(rows: Rows) -> pa.Table:
    if rows.table is not None:
        return rows.table
    return pa.concat_tables([pq.read_table(path) for path in rows.paths])


def _ddl(columns: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{name} {type_}" for name, type_ in columns)
