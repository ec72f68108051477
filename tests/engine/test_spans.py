"""Spans read at moments of their own, each compensated to one cn, are the relation at that cn."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyview.changes import Column, RelationName, RelationSchema
from steadyview.engine.spans import FewerThanNone, SpanLog, compensated, span_schema
from steadyview.engine.tagged_log import Admitted

RELATION = RelationSchema(
    RelationName("s", ("t",)), (Column("k", "BIGINT"), Column("v", "STRING"), Column("x", "DOUBLE"))
)
SCHEMA = span_schema(RELATION, (0, 1, 2))
LOGGED = SCHEMA.append(pa.field("_seq", pa.int64())).append(pa.field("_count", pa.int32()))
FIRST = 5
"""The seq of the first transaction."""

Row = tuple[int | None, str | None, float | None]
Change = tuple[Row, int]
ROWS = st.tuples(
    st.one_of(st.none(), st.integers(0, 9)),
    st.sampled_from([None, "", "a"]),
    st.sampled_from([None, 0.0, 1.5]),
)


@dataclass(frozen=True)
class History:
    """Rows before, what each transaction changed, and its cn."""

    before: list[Row]
    transactions: list[list[Change]]
    cns: list[int]

    def after(self, which: Iterable[int]) -> Counter[Row]:
        rows = Counter(self.before)
        for i in which:
            for row, count in self.transactions[i]:
                rows[row] += count
        return rows


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Every deletion is of a row that is there; an update may move its row to another span."""
    before = draw(st.lists(ROWS, max_size=12))
    present = list(before)
    transactions = []
    for _ in range(draw(st.integers(0, 8))):
        changes: list[Change] = []
        for _ in range(draw(st.integers(1, 3))):
            if present and draw(st.booleans()):
                gone = present.pop(draw(st.integers(0, len(present) - 1)))
                changes.append((gone, -1))
            if draw(st.booleans()):
                come = draw(ROWS)
                present.append(come)
                changes.append((come, 1))
        transactions.append(changes)
    size = len(transactions)
    steps = draw(st.lists(st.integers(1, 3), min_size=size, max_size=size))
    return History(before, transactions, np.cumsum(steps).tolist())


def within(row: Row, low: int | None, high: int | None) -> bool:
    if row[0] is None:
        return low is None
    return (low is None or low <= row[0]) and (high is None or row[0] < high)


@st.composite
def shown(draw: st.DrawFn, history: History, low: int | None, high: int | None) -> list[int]:
    """Any set of transactions after which no row of the span is there fewer than zero times."""
    chosen: list[int] = []
    for i in draw(st.permutations(range(len(history.transactions)))):
        rows = history.after([*chosen, i])
        if draw(st.booleans()) and all(n >= 0 for r, n in rows.items() if within(r, low, high)):
            chosen.append(i)
    return chosen


def table(rows: Iterable[Row]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, r, strict=True)) for r in rows], SCHEMA)


def logged(folder: Path, history: History) -> list[str]:
    """The history as two log files."""
    rows = [
        {**dict(zip(SCHEMA.names, row, strict=True)), "_seq": FIRST + i, "_count": count}
        for i, changes in enumerate(history.transactions)
        for row, count in changes
    ]
    paths = []
    for name, part in (("a", rows[: len(rows) // 2]), ("b", rows[len(rows) // 2 :])):
        paths.append(str(folder / f"{name}.parquet"))
        pq.write_table(pa.Table.from_pylist(part, LOGGED), paths[-1])
    return paths


def reflecting(history: History, shows: Iterable[int]) -> Admitted:
    reflected = np.zeros(len(history.cns), dtype=bool)
    reflected[list(shows)] = True
    return Admitted(FIRST, np.array(history.cns, dtype=np.int64), reflected)


def rows_of(parts: Iterable[pa.Table]) -> Counter[Row]:
    return Counter(tuple(row.values()) for part in parts for row in part.to_pylist())


@given(st.data(), histories(), st.sets(st.integers(-1, 10), max_size=4), st.integers(0, 25))
def test_spans_of_any_moments_together_are_the_relation_at_the_cn(data, history, cuts, cn):
    edges = [None, *sorted(cuts), None]
    found: Counter[Row] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        files = logged(Path(folder), history)
        for low, high in zip(edges, edges[1:], strict=False):
            shows = data.draw(shown(history, low, high))
            answer = [r for r in history.after(shows).elements() if within(r, low, high)]
            log = SpanLog(files, SCHEMA, reflecting(history, shows), cn)
            batches = table(answer).to_batches(max_chunksize=3)
            found += rows_of(compensated(batches, log.net(0, low, high), 0))
    committed = [i for i, at in enumerate(history.cns) if at <= cn]
    assert found == +history.after(committed)


def test_a_row_that_is_there_fewer_than_zero_times_is_an_error(tmp_path):
    history = History([], [[((1, "a", None), -1)]], [1])
    log = SpanLog(logged(tmp_path, history), SCHEMA, reflecting(history, []), 1)
    with pytest.raises(FewerThanNone, match="'a'"):
        list(compensated([], log.net(0, None, None), 0))


def test_bits_are_what_counts(tmp_path):
    rows: list[Row] = [(1, None, 0.0), (1, None, -0.0), (2, None, float("nan"))]
    history = History([rows[0], rows[2]], [[(rows[0], -1), (rows[1], 1), (rows[2], -1)]], [7])
    log = SpanLog(logged(tmp_path, history), SCHEMA, reflecting(history, [0]), 6)
    parts = compensated(table([rows[1]]).to_batches(), log.net(0, None, None), 0)
    assert sorted(str(row) for row in rows_of(parts)) == ["(1, None, 0.0)", "(2, None, nan)"]
