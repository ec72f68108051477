"""What only SQLite has: REPLACE, free typing, its own kinds of tables, one file for everything."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steadyview.changes import RelationSchema
from steadyview.errors import ColumnLost, SourceRefused, SourceUnavailable
from steadyview.sources.contract import Read, ReadTask, Span
from steadyview.sources.sqlite import log
from steadyview.sources.sqlite.schema import read_table
from steadyview.sources.sqlite.setup import log_relation
from tests.sources.world import SqliteWorld, Watch, answer

TYPES = [
    ("INTEGER", "BIGINT", [-(2**63), 2**63 - 1]),
    ("bigint", "BIGINT", [7]),
    ("REAL", "DOUBLE", [0.1, -1.5e300, float("inf")]),
    ("TEXT", "STRING", ["", "ß✓𝄞", "nul\0inside"]),
    ("VARCHAR(3)", "STRING", ["longer than three"]),
    ("BLOB", "BINARY", [b"", b"\x00\xff"]),
    ("BOOLEAN", "BOOLEAN", [True, False]),
    ("DATE", "DATE", [date(1, 1, 1), date(9999, 12, 31)]),
    (
        "DATETIME",
        "TIMESTAMP_NTZ",
        [datetime(2024, 2, 29, 23, 59, 59, 999999), datetime(1999, 1, 1)],
    ),
    ("DECIMAL(10,2)", "DECIMAL(10,2)", [Decimal("1.10"), Decimal("-99999999.99"), Decimal("3.00")]),
    ("NUMERIC", "DECIMAL(38,18)", [Decimal("0.1"), Decimal(5)]),
]


def stored(value: Any) -> Any:
    """As an application would hand it to SQLite."""
    return str(value) if isinstance(value, (Decimal, date, datetime)) else value


def test_every_type_is_the_same_in_stream_and_answer(sqlite: SqliteWorld) -> None:
    sqlite.table("kinds", ", ".join(f"c{i} {t}" for i, (t, _, _) in enumerate(TYPES)))
    watch = sqlite.watch("kinds")
    (relation,) = watch.relations
    assert [c.type for c in relation.columns] == [spark for _, spark, _ in TYPES]
    writer = sqlite.writer()
    expected: Counter[tuple[Any, ...]] = Counter()
    for i, (_, _, values) in enumerate(TYPES):
        for value in [*values, None]:
            writer.execute(f"INSERT INTO kinds (c{i}) VALUES (?)", stored(value))
            expected[tuple(value if j == i else None for j in range(len(TYPES)))] += 1
    watch.drain()
    snapshot = watch.source.snapshot()
    assert watch.lost == {}
    assert watch.replay(relation) == expected
    assert answer(snapshot, relation) == expected
    snapshot.close()


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("INTEGER", "abc"),
        ("INTEGER", 1.5),
        ("INTEGER", b"1"),
        ("REAL", "abc"),
        ("TEXT", b"bytes"),
        ("BLOB", "text"),
        ("BOOLEAN", 2),
        ("DATE", "2024-1-1"),
        ("DATE", "2024-02-30"),
        ("DATE", 1_700_000_000),
        ("DATETIME", "2024-01-01"),
        ("DATETIME", "2024-01-01 00:00:00Z"),
        ("DECIMAL(10,2)", "1.005"),
        ("DECIMAL(10,2)", 123456789.25),
        ("NUMERIC", 0.1 + 0.2),
        ("NUMERIC", float("inf")),
        ("NUMERIC", "1" + "0" * 30),
        ("NUMERIC", "twelve"),
    ],
)
def test_a_value_of_another_kind_is_named_and_loses_its_column_only(
    sqlite: SqliteWorld, kind: str, value: Any
) -> None:
    sqlite.table("t", f"id INTEGER PRIMARY KEY, v {kind}, w INTEGER")
    watch = sqlite.watch("t")
    writer = sqlite.writer()
    for row in ((1, None, 5), (2, value, 6), (3, None, 7)):
        writer.execute("INSERT INTO t VALUES (?, ?, ?)", *row)
        watch.drain()
    assert list(watch.lost) == [("t", "v")]
    assert "(id) = (2)" in watch.lost["t", "v"]
    assert [x.seq for c in watch.chunks for x in c.lost] == [2]
    assert watch.replay(watch.relations[0]) == Counter([(1, None, 5), (2, None, 6), (3, None, 7)])
    snapshot = watch.source.snapshot()
    with pytest.raises(ColumnLost, match=r'"v" of "src.t".*\(id\) = \(2\)'):
        answer(snapshot, watch.relations[0])
    assert answer(snapshot, watch.relations[0], [0, 2]) == Counter([(1, 5), (2, 6), (3, 7)])
    snapshot.close()


@pytest.mark.parametrize(
    ("columns", "options", "is_key"),
    [
        ("a INTEGER PRIMARY KEY, b TEXT", "", True),
        ("a INTEGER PRIMARY KEY, b TEXT, UNIQUE (a)", "", True),
        ("a INTEGER PRIMARY KEY DESC, b TEXT", "", False),
        ("a INT PRIMARY KEY, b TEXT", "", False),
        ("a INT NOT NULL PRIMARY KEY, b TEXT", "", True),
        ("a INT, b TEXT, PRIMARY KEY (a)", "WITHOUT ROWID", True),
        ("a INT, b TEXT, PRIMARY KEY (a)", "STRICT", True),
        ("a INT NOT NULL, b TEXT, PRIMARY KEY (b, a)", "", False),
        ("a INT NOT NULL, b TEXT NOT NULL, PRIMARY KEY (b, a)", "", True),
    ],
)
def test_a_primary_key_is_a_key_unless_it_may_be_null(
    columns: str, options: str, is_key: bool
) -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute(f"CREATE TABLE t ({columns}) {options}")
    schema = read_table(connection, "src", "t").schema
    assert bool(schema.key) is is_key
    assert schema.primary
    for row in [(None, None), (1, None), (1, "b")] * 2:
        connection.execute("INSERT OR IGNORE INTO t (a, b) VALUES (?, ?)", row)
    key = ", ".join(schema.primary)
    keys = Counter(connection.execute(f"SELECT {key} FROM t").fetchall())
    assert (max(keys.values()) == 1) is is_key
    connection.close()


def test_a_primary_key_that_may_be_null_still_names_rows(sqlite: SqliteWorld) -> None:
    sqlite.table("t", "id TEXT PRIMARY KEY, v INTEGER")
    watch = sqlite.watch("t")
    assert (watch.relations[0].key, watch.relations[0].primary) == ((), ("id",))
    sqlite.writer().execute("INSERT INTO t VALUES ('two', 'x')")
    watch.drain()
    assert "(id) = (two)" in watch.lost["t", "v"]


def test_every_bad_value_is_told_once_per_transaction_and_good_ones_are_kept(
    sqlite: SqliteWorld,
) -> None:
    sqlite.table("t", "id INTEGER PRIMARY KEY, v INTEGER")
    watch = sqlite.watch("t")
    writer = sqlite.writer()
    for values in ("(1, 1), (2, 'x'), (3, 3), (4, 'y')", "(5, 5)", "(6, 'z'), (7, 7)"):
        writer.execute(f"INSERT INTO t VALUES {values}")
        watch.drain()
    assert [(x.column, x.seq) for c in watch.chunks for x in c.lost] == [("v", 1), ("v", 3)]
    rows = [(1, 1), (2, None), (3, 3), (4, None), (5, 5), (6, None), (7, 7)]
    assert watch.replay(watch.relations[0]) == Counter(rows)


def test_a_column_that_came_back_and_goes_again_is_told_again(sqlite: SqliteWorld) -> None:
    sqlite.table("t", "id INTEGER PRIMARY KEY, v INTEGER")
    watch = sqlite.watch("t")
    writer = sqlite.writer()
    for old, new in (("v", "w"), ("w", "v"), ("v", "w")):
        writer.execute(f"ALTER TABLE t RENAME COLUMN {old} TO {new}")
        writer.execute(f"INSERT INTO t (id, {new}) SELECT coalesce(max(id), 0) + 1, 7 FROM t")
        watch.drain()
    assert [(x.column, x.seq) for c in watch.chunks for x in c.lost] == [("v", 1), ("v", 3)]
    assert watch.replay(watch.relations[0]) == Counter([(1, None), (2, 7), (3, None)])


def test_text_that_is_not_utf8_is_named(sqlite: SqliteWorld) -> None:
    sqlite.table("t", "id INTEGER PRIMARY KEY, v TEXT")
    watch = sqlite.watch("t")
    sqlite.writer().execute("INSERT INTO t VALUES (1, CAST(x'ff' AS TEXT))")
    watch.drain()
    assert list(watch.lost) == [("t", "v")]
    snapshot = watch.source.snapshot()
    with pytest.raises(ColumnLost):
        answer(snapshot, watch.relations[0])
    snapshot.close()


@pytest.mark.parametrize("kind", ["", "GEOMETRY", "JSON", "DECIMAL(39,2)", "DECIMAL(4,5)", "ANY"])
def test_a_declared_type_without_an_exact_spark_type_is_left_out(
    sqlite: SqliteWorld, kind: str
) -> None:
    sqlite.table("t", f"id INTEGER PRIMARY KEY, v {kind}")
    source = sqlite.source("t")
    (relation,) = source.schemas()
    assert [c.name for c in relation.columns] == ["id"]
    assert list(source.unsupported()[relation.name]) == ["v"]


SHAPES = {
    "rowid alias and two unique keys": (
        "a INTEGER PRIMARY KEY, b TEXT UNIQUE, c INTEGER, d INTEGER, UNIQUE (c, d)"
    ),
    "no primary key": "a INTEGER, b TEXT UNIQUE, c INTEGER, d INTEGER",
    "without rowid": (
        "a INTEGER, b TEXT COLLATE NOCASE, c INTEGER UNIQUE, d INTEGER, PRIMARY KEY (b, a)"
    ),
    "replace by itself": (
        "a INTEGER PRIMARY KEY ON CONFLICT REPLACE, b TEXT UNIQUE ON CONFLICT IGNORE,"
        " c INTEGER, d INTEGER"
    ),
    "default for null": (
        "a INTEGER PRIMARY KEY, b TEXT NOT NULL DEFAULT 'x' UNIQUE, c INTEGER, d INTEGER"
    ),
    "hidden rowid": "a INTEGER, b TEXT COLLATE NOCASE UNIQUE, c INTEGER, d INTEGER, rowid TEXT",
}

small = st.one_of(st.none(), st.integers(0, 4))
letter = st.one_of(st.none(), st.sampled_from(["x", "X", "y", "z"]))
conflict = st.sampled_from(["", "OR REPLACE", "OR IGNORE", "OR FAIL", "OR ABORT", "OR ROLLBACK"])
inserts = st.tuples(
    st.builds("INSERT {} INTO t (a, b, c, d) VALUES (?, ?, ?, ?), (?, ?, ?, ?)".format, conflict),
    st.tuples(small, letter, small, small, small, letter, small, small),
)
updates = st.tuples(
    st.builds(
        "UPDATE {} t SET {} WHERE c = ? OR d = ?".format,
        conflict,
        st.sampled_from(["a = ?, b = ?", "c = ?, b = ?"]),
    ),
    st.tuples(small, letter, small, small),
)
upserts = st.tuples(
    st.just(
        "INSERT INTO t (a, b, c, d) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET c = ?, d = d + 1"
    ),
    st.tuples(small, letter, small, small, small),
)
deletes = st.tuples(st.just("DELETE FROM t WHERE a = ? OR b = ?"), st.tuples(small, letter))
moods = st.tuples(
    st.sampled_from(["PRAGMA recursive_triggers = 0", "PRAGMA recursive_triggers = 1"]), st.just(())
)
histories = st.lists(st.one_of(inserts, inserts, updates, upserts, deletes, moods), max_size=25)


def changed(writer: sqlite3.Connection, statement: str, values: tuple[Any, ...]) -> None:
    with contextlib.suppress(sqlite3.IntegrityError):
        writer.execute(statement, values)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_log_replays_to_the_table_whatever_replace_removes(shape: str) -> None:
    @settings(max_examples=150)
    @given(history=histories)
    def check(history: list[tuple[str, tuple[Any, ...]]]) -> None:
        connection = sqlite3.connect(":memory:", isolation_level=None)
        options = "WITHOUT ROWID" if shape == "without rowid" else ""
        connection.execute(f"CREATE TABLE t ({SHAPES[shape]}) {options}")
        log.create(connection, "memory", "00000000")
        log_relation(connection, read_table(connection, "src", "t"))
        for statement, values in history:
            changed(connection, statement, values)
        bag: Counter[tuple[Any, ...]] = Counter()
        for count, *row in connection.execute("SELECT count, v0, v1, v2, v3 FROM _steadyview_log"):
            bag[tuple(row)] += count
        rows = Counter(connection.execute("SELECT a, b, c, d FROM t").fetchall())
        connection.close()
        assert Counter({row: count for row, count in bag.items() if count}) == rows

    check()


def test_a_statement_that_fails_half_way_is_delivered_and_its_number_not_given_twice(
    sqlite: SqliteWorld,
) -> None:
    sqlite.table("t", "a INTEGER PRIMARY KEY")
    watch = sqlite.watch("t")
    writer = sqlite.writer()
    for first in (1, 5):
        with pytest.raises(sqlite3.IntegrityError):
            writer.execute("INSERT OR FAIL INTO t VALUES (?), (?)", first, first)
        watch.monitor.acknowledge(watch.take_transaction().position)
    assert watch.replay(watch.relations[0]) == Counter([(1,), (5,)])


def test_a_cascade_is_seen(sqlite: SqliteWorld) -> None:
    sqlite.table("parent", "id INTEGER PRIMARY KEY")
    sqlite.table("child", "id INTEGER PRIMARY KEY, of INTEGER REFERENCES parent ON DELETE CASCADE")
    watch = sqlite.watch("parent", "child")
    writer = sqlite.writer()
    writer.execute("PRAGMA foreign_keys = ON")
    writer.execute("INSERT INTO parent VALUES (1), (2)")
    writer.execute("INSERT INTO child VALUES (10, 1), (20, 2)")
    writer.execute("INSERT OR REPLACE INTO parent VALUES (1)")
    writer.execute("DELETE FROM parent WHERE id = 2")
    watch.drain()
    assert watch.replay(watch.relations[0]) == Counter([(1,)])
    assert watch.replay(watch.relations[1]) == Counter(writer.execute("SELECT * FROM child"))


def test_generated_columns_and_strict_tables_are_captured(sqlite: SqliteWorld) -> None:
    sqlite.writer().execute(
        "CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER AS (a * 2) STORED,"
        " c TEXT AS ('n' || a)) STRICT"
    )
    watch = sqlite.watch("t")
    writer = sqlite.writer()
    writer.execute("INSERT INTO t VALUES (1), (2)")
    writer.execute("UPDATE t SET a = 3 WHERE a = 1")
    watch.drain()
    assert watch.replay(watch.relations[0]) == Counter([(3, 6, "n3"), (2, 4, "n2")])


def test_a_unique_index_on_an_expression_is_refused(sqlite: SqliteWorld) -> None:
    sqlite.table("t", "a TEXT")
    sqlite.writer().execute("CREATE UNIQUE INDEX low ON t (lower(a))")
    with pytest.raises(SourceRefused, match="expression"):
        sqlite.source("t").schemas()


def test_a_unique_key_added_later_loses_the_relation(sqlite: SqliteWorld) -> None:
    """The triggers do not know it: a REPLACE by it would go unseen."""
    sqlite.table("t", "a INTEGER, b INTEGER")
    watch = sqlite.watch("t")
    writer = sqlite.writer()
    writer.execute("INSERT INTO t VALUES (1, 1)")
    watch.take_transaction()
    writer.execute("CREATE UNIQUE INDEX by_a ON t (a)")
    writer.execute("INSERT OR REPLACE INTO t VALUES (1, 2)")
    watch.drain()
    assert set(watch.lost) == {("t", None)}
    assert "unique key" in watch.lost["t", None]


def test_what_commits_between_two_polls_is_one_transaction_cut_at_snapshots(
    sqlite: SqliteWorld,
) -> None:
    sqlite.table("t", "a INTEGER")
    watch = sqlite.watch("t")
    writer = sqlite.writer()
    for n in range(4):
        writer.execute("INSERT INTO t VALUES (?)", n)
    held = [watch.source.snapshot()]
    for n in range(4, 6):
        writer.execute("INSERT INTO t VALUES (?)", n)
    held.append(watch.source.snapshot())
    writer.execute("INSERT INTO t VALUES (6)")
    watch.drain()
    assert [t.rows for t in watch.transactions] == [4, 2, 1]
    for number, snapshot in enumerate(held, 1):
        assert [t.seq for t in watch.transactions if snapshot.reflects(t)] == list(
            range(1, number + 1)
        )
        snapshot.close()


def test_pruning_keeps_the_numbers_growing(sqlite: SqliteWorld) -> None:
    sqlite.table("t", "a INTEGER")
    watch = sqlite.watch("t")
    writer = sqlite.writer()
    writer.execute("INSERT INTO t VALUES (0), (1)")
    first = watch.take_transaction()
    watch.monitor.acknowledge(first.position)
    assert writer.execute("SELECT count(*) FROM _steadyview_log") == [(1,)]
    snapshot = watch.source.snapshot()
    assert snapshot.reflects(first.transactions[0])
    assert snapshot.horizon == first.position
    snapshot.close()
    writer.execute("INSERT INTO t VALUES (2)")
    second = watch.take_transaction()
    assert not second.position <= first.position


def test_pruning_waits_for_no_writer(sqlite: SqliteWorld) -> None:
    sqlite.table("t", "a INTEGER")
    watch = sqlite.watch("t")
    writer = sqlite.writer()
    writer.execute("INSERT INTO t VALUES (1), (2)")
    chunk = watch.take_transaction()
    writer.execute("BEGIN IMMEDIATE")
    watch.monitor.acknowledge(chunk.position)
    snapshot = watch.source.snapshot()
    assert answer(snapshot, watch.relations[0]) == Counter([(1,), (2,)])
    snapshot.close()
    writer.execute("COMMIT")
    watch.monitor.acknowledge(chunk.position)
    assert writer.execute("SELECT count(*) FROM _steadyview_log") == [(1,)]


def test_our_own_pruning_is_no_news(sqlite: SqliteWorld) -> None:
    sqlite.table("t", "a INTEGER")
    watch = sqlite.watch("t")
    sqlite.writer().execute("INSERT INTO t VALUES (1)")
    watch.monitor.acknowledge(watch.take_transaction().position)
    assert watch.monitor.poll(0.05) is None


def test_an_open_chunk_does_not_hold_writers_up(
    sqlite: SqliteWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    from steadyview.sources.sqlite import monitor

    monkeypatch.setattr(monitor, "CHUNK_BYTES", 1)
    sqlite.table("t", "a INTEGER")
    watch = sqlite.watch("t")
    writer = sqlite.writer()
    writer.execute(
        "INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
        " WHERE i < 10000) SELECT i FROM n"
    )
    first = watch.take()
    assert first.open
    assert first.transactions == ()
    assert first.position == watch.start
    writer.execute("INSERT INTO t VALUES (0)")
    watch.monitor.acknowledge(first.position)
    while watch.chunks[-1].open:
        watch.take()
    assert sum(watch.replay(watch.relations[0]).values()) == 10_000
    watch.drain()
    assert sum(watch.replay(watch.relations[0]).values()) == 10_001
    assert [t.seq for t in watch.transactions] == [1, 2]


def test_lookups_under_a_coarser_collation_find_each_row_once(sqlite: SqliteWorld) -> None:
    import pyarrow as pa

    sqlite.table("t", "a TEXT COLLATE NOCASE")
    watch = sqlite.watch("t")
    sqlite.writer().execute("INSERT INTO t VALUES ('x'), ('X'), ('y')")
    snapshot = watch.source.snapshot()
    found = answer(snapshot, watch.relations[0], key=0, values=pa.array(["x", "X"]))
    assert found == Counter([("x",), ("X",)])
    snapshot.close()


def test_a_table_dropped_before_the_source_is_prepared_is_refused(sqlite: SqliteWorld) -> None:
    sqlite.table("t", "a INTEGER")
    source = sqlite.source("t")
    relations = source.schemas()
    sqlite.writer().execute("DROP TABLE t")
    with pytest.raises(SourceRefused, match='"t" does not exist'):
        source.prepare(relations)


def test_a_missing_file_is_refused_and_not_created(sqlite: SqliteWorld) -> None:
    sqlite.settings["path"] = "absent.db"
    with pytest.raises(SourceRefused, match="does not exist"):
        sqlite.source("t").schemas()
    assert not (sqlite.folder / "absent.db").exists()


def test_a_file_that_was_moved_or_replaced_is_unavailable(sqlite: SqliteWorld) -> None:
    sqlite.table("t", "id INTEGER PRIMARY KEY")
    watch = sqlite.watch("t")
    moved = sqlite.path.with_name("moved.db")
    sqlite.path.rename(moved)
    for call in (watch.source.snapshot, lambda: watch.monitor.poll(0)):
        with pytest.raises(SourceUnavailable, match="does not exist"):
            call()
    shutil.copy(moved, sqlite.path)
    with pytest.raises(SourceUnavailable, match="replaced"):
        watch.monitor.poll(0)


def test_removing_gives_the_journal_mode_back(sqlite: SqliteWorld) -> None:
    sqlite.table("t", "a INTEGER")
    for held in sqlite._writers:
        held.close()
    watch: Watch = sqlite.watch("t")
    relation: RelationSchema = watch.relations[0]
    assert sqlite.writer().execute("PRAGMA journal_mode") == [("wal",)]
    watch.monitor.close()
    for held in sqlite._writers:
        held.close()
    watch.source.remove()
    assert sqlite.writer().execute("PRAGMA journal_mode") == [("delete",)]
    assert relation.name.path == ("t",)


def spans_of(watch: Watch, rows: int) -> list[tuple[int, int | None, int | None]]:
    snapshot = watch.source.snapshot()
    found = [(s.column, s.low, s.high) for s in snapshot.spans(watch.relations[0], rows)]
    snapshot.close()
    return found


def test_spans_hold_every_row_once_and_every_row_to_come(sqlite: SqliteWorld) -> None:
    sqlite.table("t", "v TEXT, id INTEGER PRIMARY KEY")
    watch = sqlite.watch("t")
    writer = sqlite.writer()
    numbers = [-(2**63), -7, 0, 1, 2, 3, 50, 51, 2**62, 2**63 - 1]
    for n in numbers:
        writer.execute("INSERT INTO t VALUES ('x', ?)", n)
    assert spans_of(watch, 4) == [(1, None, 2), (1, 2, 2**62), (1, 2**62, None)]
    snapshot = watch.source.snapshot()
    (relation,) = watch.relations
    parts = [
        [row for task in snapshot.tasks(Read(relation, (1,), span=span)) for row in ids(task)]
        for span in snapshot.spans(relation, 4)
    ]
    assert parts == [numbers[:4], numbers[4:8], numbers[8:]]
    snapshot.close()


def ids(task: ReadTask) -> list[int]:
    return [i for batch in task.batches() for i in batch.column(0).to_pylist()]


def test_a_small_relation_is_not_cut(sqlite: SqliteWorld) -> None:
    sqlite.table("t", "id INTEGER PRIMARY KEY")
    watch = sqlite.watch("t")
    assert spans_of(watch, 4) == []
    sqlite.writer().execute("INSERT INTO t VALUES (1), (2), (3), (4)")
    assert spans_of(watch, 4) == []
    sqlite.writer().execute("INSERT INTO t VALUES (5)")
    assert spans_of(watch, 4) == [(0, None, 5), (0, 5, None)]


@pytest.mark.parametrize(
    "columns",
    [
        "id INT NOT NULL PRIMARY KEY, v TEXT",
        "id INTEGER NOT NULL UNIQUE, v TEXT",
        "id INTEGER, v TEXT, PRIMARY KEY (id, v)",
        "id INTEGER PRIMARY KEY DESC, v TEXT",
    ],
)
def test_a_relation_is_cut_only_by_a_column_that_holds_nothing_but_whole_numbers(
    sqlite: SqliteWorld, columns: str
) -> None:
    sqlite.table("t", columns)
    watch = sqlite.watch("t")
    sqlite.writer().execute("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c'), ('x', 'd')")
    assert spans_of(watch, 1) == []


def test_a_span_by_a_column_that_is_gone_is_refused(sqlite: SqliteWorld) -> None:
    sqlite.table("t", "id INTEGER PRIMARY KEY, v TEXT")
    watch = sqlite.watch("t")
    writer = sqlite.writer()
    writer.execute("INSERT INTO t VALUES (1, 'a')")
    writer.execute("ALTER TABLE t RENAME COLUMN id TO number")
    snapshot = watch.source.snapshot()
    with pytest.raises(ColumnLost, match='"id"'):
        snapshot.tasks(Read(watch.relations[0], (1,), span=Span(0, 0, 5)))
    assert snapshot.spans(watch.relations[0], 1) == []
    snapshot.close()
