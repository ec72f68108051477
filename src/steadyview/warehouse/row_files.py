"""A view's rows by Arrow alone, from its files: for tables and readers without Spark.

    state(cn)  =  base(c)  -  gone  +  come         gone, come: the net view delta between c and cn

A file's rows are known by their places in it, so `gone` is a list of places per row group: found
once, over all files, it can be left out anywhere. Rows are the same by `<=>` on every column, as in
Spark: NULL is NULL, NaN is NaN, and -0.0 is 0.0. Nothing is read but row groups and the change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from steadyview.changes import arrow_type
from steadyview.delta import FileEntry
from steadyview.delta.files import check_whole
from steadyview.delta.parquet import CHECKED, reading
from steadyview.warehouse.impossible import below_zero_error
from steadyview.warehouse.view_store import CN, COUNT, ViewStore

_PIECE = 128 * 1024
"""Rows that are at hand at a time."""
_NARROW = 2
"""By so many columns rows are chosen before all the others are read."""

Columns = Sequence[tuple[str, str]]
Places = np.ndarray
"""Numbers of rows within a row group, ascending."""


@dataclass(frozen=True)
class RowGroup:
    """One row group of a file, without the rows at the places `gone`."""

    path: str
    number: int
    rows: int
    size: int
    gone: Places = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @property
    def left(self) -> int:
        """How many rows there are without those."""
        return self.rows - len(self.gone)


@dataclass(frozen=True)
class NetChange:
    """A net change: rows `c0`, `c1`, ..., each with `_count` copies, that go and that come."""

    gone: pa.Table
    come: pa.Table

    @property
    def empty(self) -> bool:
        """Whether it changes nothing."""
        return not (self.gone.num_rows or self.come.num_rows)


    def only(self, columns: Columns, wanted: pc.Expression | None) -> NetChange:
        """What it does to the wanted rows, told by the columns' names."""
        if wanted is None:
            return self
        names = [*(name for name, _ in columns), COUNT]
        found = [
            rows.rename_columns(names).filter(wanted).rename_columns(rows.column_names)
            for rows in (self.gone, self.come)
        ]
        return NetChange(*found)


def net_change(store: ViewStore, version: int, after: int, upto: int) -> NetChange:
    """What leads from the view's state at one cn to that at another, before it or after it."""
    low, high = min(after, upto), max(after, upto)
    files = store.delta_files(version, low, high)
    check_whole(files)
    schema = pa.schema([(name, arrow_type(type_)) for name, type_ in store.shape.delta])
    paths = [f.path for f in files]
    within = (pc.field(CN) > low) & (pc.field(CN) <= high)
    with reading(store.delta.path, paths):
        delta = ds.dataset(paths, schema=schema, format=CHECKED) if paths else None
        rows = schema.empty_table() if delta is None else delta.to_table(filter=within)
    keys = [name for name, _ in store.shape.stored]
    signed = netted(rows, keys)
    count = signed[COUNT] if upto >= after else pc.negate(signed[COUNT])
    signed = signed.set_column(len(keys), COUNT, count)
    gone = signed.filter(pc.less(count, 0))
    gone = gone.set_column(len(keys), COUNT, pc.negate(gone[COUNT]))
    return NetChange(gone, signed.filter(pc.greater(count, 0)))


def netted(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    """The rows that are the same in these columns as one, with their summed count, if any."""
    summed = _comparable(rows).group_by(keys).aggregate([(COUNT, "sum")])
    found = summed.rename_columns([*keys, COUNT])
    return found.filter(pc.not_equal(found[COUNT], 0))


def copies(rows: pa.Table, columns: Columns) -> pa.Table:
    """One row per copy, under the columns' names."""
    keys = [f"c{i}" for i in range(len(columns))]
    many = np.repeat(np.arange(rows.num_rows), rows[COUNT].to_numpy())
    return rows.select(keys).take(pa.array(many)).rename_columns([n for n, _ in columns])


def row_groups(files: Sequence[FileEntry]) -> list[RowGroup]:
    """All row groups of these files, in order."""
    check_whole(files)
    found = []
    for file in files:
        with reading(Path(file.path).parent, [file.path]):
            described = pq.read_metadata(file.path)
        for number in range(described.num_row_groups):
            group = described.row_group(number)
            found.append(RowGroup(file.path, number, group.num_rows, group.total_byte_size))
    return found


def may_hold(groups: Sequence[RowGroup], wanted: pc.Expression | None) -> list[RowGroup]:
    """Those that may hold wanted rows, by what each knows of its smallest and largest values."""
    if wanted is None:
        return list(groups)
    kept = set()
    for path in dict.fromkeys(group.path for group in groups):
        with reading(Path(path).parent, [path]):
            (fragment,) = ds.dataset(path, format=CHECKED).get_fragments()
            kept |= {(path, g.id) for g in fragment.subset(wanted).row_groups}
    return [group for group in groups if (group.path, group.number) in kept]


def without(
    groups: Sequence[RowGroup], gone: pa.Table, columns: Columns
) -> tuple[list[RowGroup], pa.Table]:
    """The row groups less the rows of `gone`, and what of `gone` is in none of them.

    `columns` are those of the files, in the order of `c0`, `c1`, ...
    """
    if not gone.num_rows:
        return list(groups), gone
    narrow = _narrow(gone, columns)
    near = may_hold(groups, _between(gone, narrow, columns))
    places, left = {}, gone
    for group in near:
        places[group.path, group.number], left = _places(group, left, narrow, columns)
    none = np.empty(0, dtype=np.int64)
    return [replace(g, gone=places.get((g.path, g.number), none)) for g in groups], left


def below_zero(view: str, columns: Columns, cn: int, missing: pa.Table) -> Exception:
    """The error for a row that is to go and is not there."""
    row = missing.slice(0, 1).select([f"c{i}" for i in range(len(columns))])
    (named,) = row.rename_columns([n for n, _ in columns]).to_pylist()
    return below_zero_error(view, cn, str(named))


def rows_of(group: RowGroup, columns: Columns) -> Iterator[pa.Table]:
    """The rows that a row group is left with, in pieces, under the columns' names and types."""
    schema = pa.schema([(name, arrow_type(type_)) for name, type_ in columns])
    for start, piece in _pieces(group, None):
        kept = piece.rename_columns(schema.names).cast(schema)
        inside = group.gone[(group.gone >= start) & (group.gone < start + piece.num_rows)]
        if len(inside):
            stay = np.ones(piece.num_rows, dtype=bool)
            stay[inside - start] = False
            kept = kept.filter(pa.array(stay))
        if kept.num_rows:
            yield kept


def _pieces(group: RowGroup, columns: list[str] | None) -> Iterator[tuple[int, pa.Table]]:
    """Consecutive rows, each time with the place of the first one."""
    start = 0
    with (
        reading(Path(group.path).parent, [group.path]),
        pq.ParquetFile(group.path, page_checksum_verification=True) as file,
    ):
        batches = file.iter_batches(_PIECE, row_groups=[group.number], columns=columns)
        for batch in batches:
            yield start, pa.Table.from_batches([batch])
            start += batch.num_rows


def _places(
    group: RowGroup, gone: pa.Table, narrow: Sequence[int], columns: Columns
) -> tuple[Places, pa.Table]:
    """Where rows of `gone` are in the row group, and what of `gone` is left to be found."""
    stored = [f"c{i}" for i in range(len(columns))]
    values = {i: gone[f"c{i}"].combine_chunks() for i in narrow}
    if not gone.num_rows or narrow and not any(
        _among(piece, values).any()
        for _, piece in _pieces(group, [columns[i][0] for i in narrow])
    ):
        return np.empty(0, dtype=np.int64), gone
    places = []
    for start, piece in _pieces(group, None):
        rows = piece.rename_columns(stored)
        near = np.flatnonzero(_among(rows.select([f"c{i}" for i in narrow]), values))
        if not len(near):
            continue
        rows = _typed(rows.take(pa.array(near)), columns)
        chosen, gone = _taken(rows, gone, stored)
        places.append(near[chosen] + start)
        if not gone.num_rows:
            break
    return (np.concatenate(places) if places else np.empty(0, dtype=np.int64)), gone


def _typed(rows: pa.Table, columns: Columns) -> pa.Table:
    schema = pa.schema([(f"c{i}", arrow_type(type_)) for i, (_, type_) in enumerate(columns)])
    return _comparable(rows.cast(schema))


def _narrow(gone: pa.Table, columns: Columns) -> list[int]:
    """The columns with the most different values; not fractions, of which -0.0 is 0.0."""
    exact = [i for i, (_, t) in enumerate(columns) if not pa.types.is_floating(arrow_type(t))]
    many = {i: pc.count_distinct(gone[f"c{i}"], mode="all").as_py() for i in exact}
    return sorted(sorted(exact, key=lambda i: -many[i])[:_NARROW])


def _between(
    gone: pa.Table, narrow: Sequence[int], columns: Columns
) -> pc.Expression | None:
    """What holds for all rows of `gone`, by the files' names of columns."""
    found: pc.Expression | None = None
    for i in narrow:
        values, column = gone[f"c{i}"], pc.field(columns[i][0])
        ends = pc.min_max(values)
        inside = column.is_null()
        if ends["min"].is_valid:
            inside = inside | ((column >= ends["min"]) & (column <= ends["max"]))
        found = inside if found is None else found & inside
    return found


def _among(piece: pa.Table, values: Mapping[int, pa.Array]) -> np.ndarray:
    """Per row, whether each of its values is one of those of its column."""
    found = np.ones(piece.num_rows, dtype=bool)
    for place, wanted in enumerate(values.values()):
        found &= pc.is_in(piece[place].cast(wanted.type), value_set=wanted).to_numpy()
    return found


def _taken(rows: pa.Table, gone: pa.Table, keys: list[str]) -> tuple[np.ndarray, pa.Table]:
    """Which of the rows go: of each row of `gone` as many as it has copies; what is left of it."""
    both = _numbers(pa.concat_tables([gone.select(keys), rows.select(keys)]))
    wanted, found = both[: gone.num_rows], both[gone.num_rows :]
    counts = np.zeros(both.max() + 1, dtype=np.int64)
    counts[wanted] = gone[COUNT].to_numpy()
    order = np.argsort(found, kind="stable")
    ranked = found[order]
    first = np.searchsorted(ranked, ranked, side="left")
    chosen = np.sort(order[np.arange(len(ranked)) - first < counts[ranked]])
    counts -= np.bincount(found[chosen], minlength=len(counts))
    left = gone.set_column(len(keys), COUNT, pa.array(counts[wanted]))
    return chosen, left.filter(pc.greater(left[COUNT], 0))


def _numbers(rows: pa.Table) -> np.ndarray:
    """A number per row, the same for the same row."""
    numbers = np.zeros(rows.num_rows, dtype=np.int64)
    for column in rows.columns:
        codes = column.combine_chunks().dictionary_encode(null_encoding="encode").indices
        codes = codes.to_numpy().astype(np.int64)
        _, numbers = np.unique(numbers * (codes.max(initial=0) + 1) + codes, return_inverse=True)
    return numbers


def _comparable(rows: pa.Table) -> pa.Table:
    """The rows with one form of zero."""
    for i, column in enumerate(rows.columns):
        if pa.types.is_floating(column.type):
            zero = pa.scalar(0.0, column.type)
            rows = rows.set_column(i, rows.field(i), pc.add(column, zero))
    return rows

