"""The rows of one span of a relation at one cn, from an answer of any moment and the update log.

With S the answer about the span, P the set it reflects, and dR(s) the rows *of the span* that
transaction s logged (a row belongs to a span by its content, so an update of the key takes a row
out of one span and puts it into another):

    R(cn)  =  S  -  sum{ dR(s) : s in P, s > cn }  +  sum{ dR(s) : s not in P, s <= cn }

Each span may have a P of its own; the spans of a relation together are the whole relation at cn.
Nothing is evaluated here but equality, bit by bit: a row and its image in the log are alike. Rows
pass batch by batch; only those whose key the log mentions are kept until the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from steadyview.changes import RelationSchema, arrow_type
from steadyview.changes.types import COUNT, SEQ
from steadyview.delta.parquet import CHECKED, reading
from steadyview.engine.tagged_log import Admitted
from steadyview.engine.window_input import ARROW_LIMIT

_N = "_n"


def span_schema(relation: RelationSchema, columns: Sequence[int]) -> pa.Schema:
    """How the rows of a span are stored."""
    return pa.schema([(f"c{i}", arrow_type(relation.columns[i].type)) for i in columns])


class SpanLog:
    """The log rows of one relation that lead from answers reflecting P (`admitted`) to a cn."""

    def __init__(
        self, files: Sequence[str], schema: pa.Schema, admitted: Admitted, cn: int
    ) -> None:
        self._files = list(files)
        self._schema = schema
        self._first = admitted.first
        self._signs = (admitted.cn <= cn).astype(np.int64) - admitted.reflected
        places = np.flatnonzero(self._signs)
        self._range = (admitted.first + places[[0, -1]]).tolist() if len(places) else None

    def net(self, key: int, low: int | None, high: int | None) -> pa.Table:
        """The rows with low <= c{key} < high, with what each adds to the answer: `_n`, never 0.

        As for a `Span`: None is no bound, and NULL is lower than all.
        """
        found = self._schema.append(pa.field(_N, pa.int64())).empty_table()
        for batch in self._batches(ds.field(f"c{key}"), low, high):
            found = pa.concat_tables([found, self._signed(batch)])
            if found.num_rows > ARROW_LIMIT:
                found = net_rows(found)
        return net_rows(found)

    def _batches(
        self, key: ds.Expression, low: int | None, high: int | None
    ) -> Iterator[pa.RecordBatch]:
        if self._range is None or not self._files:
            return
        first, last = self._range
        wanted = (ds.field(SEQ) >= first) & (ds.field(SEQ) <= last)
        if high is not None:
            wanted &= (key < high) | key.is_null() if low is None else key < high
        if low is not None:
            wanted &= key >= low
        schema = self._schema.append(pa.field(COUNT, pa.int32())).append(pa.field(SEQ, pa.int64()))
        with reading(Path(self._files[0]).parent, self._files):
            dataset = ds.dataset(self._files, schema=schema, format=CHECKED)
            yield from dataset.to_batches(filter=wanted)

    def _signed(self, batch: pa.RecordBatch) -> pa.Table:
        table = pa.table(batch)
        sign = self._signs[table[SEQ].to_numpy() - self._first]
        counts = pa.array(sign * table[COUNT].to_numpy(), pa.int64())
        table = table.drop_columns([COUNT, SEQ]).append_column(_N, counts)
        return table.filter(pc.not_equal(table[_N], 0))


def net_rows(rows: pa.Table) -> pa.Table:
    """Equal rows as one, `_n` summed; none with zero.

    >>> net_rows(pa.table({"c0": [7, None, 7, None], "_n": [1, 2, -1, 1]})).to_pydict()
    {'c0': [None], '_n': [3]}
    """
    names = [n for n in rows.column_names if n != _N]
    summed = rows.group_by(names).aggregate([(_N, "sum")]).rename_columns([*names, _N])
    return summed.filter(pc.not_equal(summed[_N], 0)).select(rows.column_names)


class FewerThanNone(Exception):
    """A row would be there fewer than zero times; the row, for people."""


def compensated(
    answer: Iterable[pa.RecordBatch], net: pa.Table, key: int
) -> Iterator[pa.Table]:
    """The answer plus the net rows of its span, one row per copy.

    >>> answer = pa.table({"c0": [1, 2, 3]}).to_batches()
    >>> net = pa.table({"c0": [2, 9], "_n": [-1, 1]})
    >>> sorted(row for part in compensated(answer, net, 0) for row in part["c0"].to_pylist())
    [1, 3, 9]
    """
    touched = pc.unique(net[f"c{key}"])
    names = net.column_names[:-1]
    aside = [net]
    for batch in answer:
        table = pa.table(batch).select(names)
        mentioned = pc.is_in(table[f"c{key}"], value_set=touched)
        yield table.filter(pc.invert(mentioned))
        met = table.filter(mentioned)
        aside.append(met.append_column(_N, pa.array(np.ones(met.num_rows, np.int64))))
    yield _copies(net_rows(pa.concat_tables([part.cast(net.schema) for part in aside])))


def _copies(rows: pa.Table) -> pa.Table:
    counts = rows[_N].to_numpy()
    if len(counts) and counts.min() < 0:
        bad = rows.drop_columns([_N]).slice(int(counts.argmin()), 1).to_pylist()
        raise FewerThanNone(str(tuple(bad[0].values())))
    return rows.drop_columns([_N]).take(pa.array(np.repeat(np.arange(len(counts)), counts)))
