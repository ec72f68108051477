"""Which views are kept straight from the log, and that entries add up to what the view is."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from steadyview.changes import Column, RelationName, RelationSchema
from steadyview.changes.types import COUNT, SEQ
from steadyview.maintenance.records.additive_views import AdditiveView
from steadyview.maintenance.records.apply_if_unseen import ApplyingIfUnseen
from steadyview.maintenance.records.entries import LogEntry
from steadyview.maintenance.records.view_manager import ViewManager
from steadyview.plans.aggregates import ArgumentTypes, GroupedTypes
from steadyview.plans.draft import RelationInput
from steadyview.plans.node import Node
from steadyview.plans.plan import FromRelation, PlanNode
from steadyview.runtime.managers.log_entries import LogRows, entries_of
from steadyview.runtime.managers.record_view import RecordView, record_view
from steadyview.views.parse import parse_view
from steadyview.views.plan import plan_view
from steadyview.views.record_rows import NotByRecord

T = RelationSchema(
    RelationName("s", ("t",)),
    (Column("id", "BIGINT"), Column("g", "STRING"), Column("x", "INT"), Column("f", "DATE")),
    ("id",),
)
U = RelationSchema(
    RelationName("s", ("u",)), (Column("id", "BIGINT"), Column("h", "STRING")), ("id",)
)
GROUPED = "SELECT g, COUNT(*) AS n, COUNT(x) AS c, SUM(x) AS s, AVG(x) AS a FROM s.t"


def planned(select: str, key: str, types: tuple[str, ...]) -> RecordView:
    """As the product plans it; Spark's part, the types, is given."""
    draft = plan_view(parse_view("v", select), [T, U], {}, {})
    (one,) = draft.drafts
    whole = ArgumentTypes("INT", "BIGINT", "DOUBLE")
    fold = None
    if one.grouped is not None:
        keys = tuple("STRING" for _ in one.grouped.keys)
        fold = one.grouped.fold(GroupedTypes(keys, tuple(whole for _ in one.grouped.arguments)))
    known = {r.name: r for r in (T, U)}
    inputs = []
    for read in one.inputs:
        assert isinstance(read, RelationInput)
        columns = known[read.relation].columns
        inputs.append(
            FromRelation(read.relation, tuple((i, c.type) for i, c in enumerate(columns)))
        )
    columns = tuple(zip(one.columns, types, strict=True))
    node = PlanNode(Node(one.block, fold), tuple(inputs), columns)
    named = tuple(zip(draft.names, types, strict=True))
    return record_view("v", node, named, (key,), [T, U])


VIEWS = {
    "grouped": (
        f"{GROUPED} WHERE x > 1 OR x IS NULL GROUP BY g",
        "g",
        ("STRING", "BIGINT", "BIGINT", "BIGINT", "DOUBLE"),
    ),
    "distinct": ("SELECT DISTINCT g FROM s.t", "g", ("STRING",)),
    "union": ("SELECT g FROM s.t UNION SELECT h FROM s.u", "g", ("STRING",)),
    "intersect": ("SELECT g FROM s.t INTERSECT SELECT h FROM s.u", "g", ("STRING",)),
    "except": ("SELECT g FROM s.t EXCEPT SELECT h FROM s.u WHERE id > 2", "g", ("STRING",)),
    "chosen": ("SELECT x, id FROM s.t WHERE g <> 'a'", "id", ("INT", "BIGINT")),
}


def logged(relation: RelationSchema, rows: list[tuple[Any, ...]]) -> pa.Table:
    types = [
        {"BIGINT": pa.int64(), "INT": pa.int32(), "DATE": pa.date32()}.get(c.type, pa.string())
        for c in relation.columns
    ]
    names = [*(f"c{i}" for i in range(len(types))), SEQ, COUNT]
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    kinds = [*types, pa.int64(), pa.int32()]
    return pa.table([pa.array(c, t) for c, t in zip(columns, kinds, strict=True)], names=names)


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("seed", range(3))
def test_entries_cut_anyhow_add_up_to_what_sqlite_says_of_the_tables(name: str, seed: int) -> None:
    view = planned(*VIEWS[name])
    dice = random.Random(seed)
    base: dict[str, dict[int, tuple[Any, ...]]] = {"t": {}, "u": {}}
    rows: dict[str, list[tuple[Any, ...]]] = {"t": [], "u": []}
    for seq in range(1, 60):
        for _ in range(dice.choice((1, 1, 3))):
            table, i = dice.choice("tu"), dice.randrange(6)
            g = dice.choice(("a", "b", None))
            new = (i, g, dice.choice((None, 0, 2, 3)), None) if table == "t" else (i, g)
            old = base[table].pop(i, None)
            rows[table] += [(*old, seq, -1)] if old else []
            if dice.random() < 0.7:
                base[table][i] = new
                rows[table].append((*new, seq, 1))
    found: dict[Any, Any] = {}
    at = 0
    while at < 60:
        upto = at + dice.randrange(1, 9)
        logs = []
        for read in view.reads:
            relation = T if read.relation == T.name else U
            mine = [r for r in rows[read.relation.path[0]] if at < r[-2] <= upto]
            dice.shuffle(mine)
            logs.append(LogRows(read, logged(relation, mine)))
        for entries in entries_of(view, 1, "s", logs).values():
            assert [e.number for e in entries] == sorted(e.number for e in entries)
            for entry in entries:
                _take(view, found, entry)
        at = upto
    assert _shown(view, found) == _by_sqlite(VIEWS[name][0], base)


def _take(view: RecordView, found: dict[Any, Any], entry: LogEntry) -> None:
    if view.keyed:
        found[entry.key] = entry.new
        return
    assert entry.new is not None
    key, amounts = entry.new
    before = found.get(key, (0,) * len(amounts))
    found[key] = tuple(map(int.__add__, before, amounts))


def _shown(view: RecordView, found: dict[Any, Any]) -> Counter[Any]:
    """By SQL over the stored columns, as a store shows them."""
    if view.keyed:
        return Counter((*values, *key) for key, values in found.items() if values is not None)
    store = sqlite3.connect(":memory:")
    names = [*view.layout.key, *(n for n, _ in view.layout.sums)]
    store.execute(f"CREATE TABLE r ({', '.join(names)})")
    for key, amounts in found.items():
        store.execute(f"INSERT INTO r VALUES ({', '.join('?' * len(names))})", (*key, *amounts))
    shown = dict(view.layout.shown)
    listed = ", ".join(shown.get(n, n) for n, _ in view.layout.columns)
    rows = store.execute(f"SELECT {listed} FROM r WHERE _rows > 0 AND {view.layout.there}")
    return Counter(rows.fetchall())


def _by_sqlite(select: str, base: dict[str, dict[int, tuple[Any, ...]]]) -> Counter[Any]:
    tables = sqlite3.connect(":memory:")
    tables.execute("CREATE TABLE t (id, g, x, f)")
    tables.execute("CREATE TABLE u (id, h)")
    for name, rows in base.items():
        for row in rows.values():
            tables.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", row)
    return Counter(tables.execute(select.replace("s.", "")).fetchall())


@pytest.mark.parametrize(
    ("select", "key", "types", "why"),
    [
        ("SELECT g, MIN(x) AS m FROM s.t GROUP BY g", "g", ("STRING", "INT"), "shows"),
        (f"{GROUPED} GROUP BY g HAVING COUNT(*) > 1", "g", VIEWS["grouped"][2], "HAVING"),
        ("SELECT x, g FROM s.t", "g", ("INT", "STRING"), "key"),
        (GROUPED.replace("g, ", ""), "n", VIEWS["grouped"][2][1:], "one row"),
        ("SELECT id, UPPER(g) AS g FROM s.t", "id", ("BIGINT", "STRING"), "Spark alone"),
        ("SELECT id FROM s.t WHERE f > '2026-01-01'", "id", ("BIGINT",), "other types"),
        ("SELECT id FROM s.t WHERE g > 1", "id", ("BIGINT",), "other types"),
        ("SELECT t.id FROM s.t JOIN s.u ON u.id = t.id", "id", ("BIGINT",), "one table"),
        ("SELECT g FROM s.t EXCEPT ALL SELECT h FROM s.u", "g", ("STRING",), "several times"),
    ],
)
def test_what_python_might_compute_otherwise_than_spark_is_left_to_changes(
    select: str, key: str, types: tuple[str, ...], why: str
) -> None:
    with pytest.raises(NotByRecord, match=why):
        planned(select, key, types)


def test_a_position_is_behind_a_transaction_when_all_its_entries_are_done() -> None:
    view = AdditiveView("v", lambda _, r: r[0], lambda _, r: r[1], lambda a: a[0], lambda _: ())
    streams = entries_of(
        planned(*VIEWS["distinct"]),
        1,
        "s",
        [
            LogRows(
                planned(*VIEWS["distinct"]).reads[0],
                logged(
                    T,
                    [
                        (1, "a", None, None, 5, 1),
                        (1, "b", None, None, 5, 1),
                        (1, "a", None, None, 6, 1),
                    ],
                ),
            )
        ],
    )
    ((stream, entries),) = streams.items()
    assert [e.number for e in entries] == [5, 5, 6]
    manager = ViewManager(ApplyingIfUnseen(view), {stream: 4}, together=1)
    manager.received(stream, entries)
    positions = []
    while asked := manager.begin():
        while asked:
            ((number, _),) = asked
            asked = manager.answered(number, None)
        positions.append(manager.positions[stream])
    assert positions == [4, 5, 6]
