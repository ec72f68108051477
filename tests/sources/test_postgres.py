"""What only PostgreSQL has: its types, TOAST, TRUNCATE, slots, publications, held commits."""

from __future__ import annotations

import pickle
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest
from psycopg import conninfo

from examples.embedded_postgres import embedded_postgres
from steadyview.changes import arrow_type
from steadyview.errors import ChangesLost, ColumnLost, SourceRefused, SourceUnavailable
from steadyview.sources import Read, Source, open_source
from steadyview.sources.postgres import slot
from steadyview.sources.postgres.connection import Address
from steadyview.sources.postgres.snapshot import VisibleTransactions
from tests.servers import shared_postgres
from tests.sources.world import PostgresWorld, Watch, answer, images


def losses(watch: Watch) -> list[tuple[str | None, int]]:
    """Column (None: the relation) and seq of everything that was told to be lost, in order."""
    return [(x.column, x.seq) for c in watch.chunks for x in c.lost]


# Column type, its Spark type, and pairs of SQL text and the value it must arrive as.
TYPES = [
    ("smallint", "SMALLINT", [("-32768", -32768), ("32767", 32767)]),
    ("integer", "INT", [("-2147483648", -(2**31)), ("0", 0)]),
    ("bigint", "BIGINT", [("9223372036854775807", 2**63 - 1)]),
    (
        "numeric(12,2)",
        "DECIMAL(12,2)",
        [("-1.5", Decimal("-1.50")), ("9999999999.99", Decimal("9999999999.99"))],
    ),
    ("numeric(38,38)", "DECIMAL(38,38)", [("0.1", Decimal("0.1"))]),
    ("numeric(38,0)", "DECIMAL(38,0)", [("9" * 38, Decimal("9" * 38))]),
    (
        "numeric",
        "DECIMAL(38,18)",
        [("1.000000000000000001", Decimal("1.000000000000000001")), ("-7", Decimal("-7"))],
    ),
    ("real", "FLOAT", [("1.5", 1.5), ("Infinity", float("inf"))]),
    (
        "double precision",
        "DOUBLE",
        [("0.1", 0.1), ("-Infinity", float("-inf")), ("1e-300", 1e-300)],
    ),
    ("text", "STRING", [("", ""), ("tab\tnew\nline", "tab\tnew\nline"), ("ß✓𝄞", "ß✓𝄞")]),
    ("varchar(5)", "STRING", [("abc  ", "abc  ")]),
    ("char(5)", "STRING", [("ab", "ab   "), ("", "     ")]),
    ("boolean", "BOOLEAN", [("t", True), ("f", False)]),
    ("date", "DATE", [("0001-01-01", date(1, 1, 1)), ("9999-12-31", date(9999, 12, 31))]),
    (
        "timestamp",
        "TIMESTAMP_NTZ",
        [
            ("2024-02-29 23:59:59.999999", datetime(2024, 2, 29, 23, 59, 59, 999999)),
            ("0001-01-01 00:00", datetime(1, 1, 1)),
        ],
    ),
    (
        "timestamp(3) with time zone",
        "TIMESTAMP",
        [("2024-01-01 02:00:00.5+02", datetime(2024, 1, 1, 0, 0, 0, 500000, tzinfo=UTC))],
    ),
    (
        "uuid",
        "STRING",
        [("A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")],
    ),
    ("bytea", "BINARY", [("\\x", b""), ("\\x00ff27", b"\x00\xff'")]),
    ("json", "STRING", [('{"b": 1,  "a": [null]}', '{"b": 1,  "a": [null]}')]),
    ("jsonb", "STRING", [('{"b": 1,  "a": 2}', '{"a": 2, "b": 1}')]),
    ("mood", "STRING", [("so so", "so so")]),
]
KEYABLE = {
    "smallint",
    "integer",
    "bigint",
    "numeric",
    "text",
    "varchar",
    "boolean",
    "date",
    "timestamp",
    "uuid",
    "bytea",
}


def test_every_type_is_the_same_in_stream_and_answer(postgres: PostgresWorld) -> None:
    writer = postgres.writer()
    writer.execute("CREATE TYPE mood AS ENUM ('good', 'so so')")
    columns = ", ".join(f"c{i} {t}" for i, (t, _, _) in enumerate(TYPES))
    postgres.table("kinds", columns)
    watch = postgres.watch("kinds")
    (relation,) = watch.relations
    assert [c.type for c in relation.columns] == [spark for _, spark, _ in TYPES]
    expected: Counter[tuple[object, ...]] = Counter()
    for i, (_, _, values) in enumerate(TYPES):
        for text, value in [*values, (None, None)]:
            writer.execute(f"INSERT INTO kinds (c{i}) VALUES (?)", text)
            expected[tuple(value if j == i else None for j in range(len(TYPES)))] += 1
    watch.drain()
    snapshot = watch.source.snapshot()
    assert watch.replay(relation) == expected
    assert answer(snapshot, relation) == expected
    assert watch.lost == {}
    snapshot.close()


def test_every_keyable_type_finds_its_values_and_nothing_for_impossible_ones(
    postgres: PostgresWorld,
) -> None:
    writer = postgres.writer()
    writer.execute("CREATE TYPE mood AS ENUM ('good', 'so so')")
    postgres.table("kinds", ", ".join(f"c{i} {t}" for i, (t, _, _) in enumerate(TYPES)))
    (relation,) = postgres.watch("kinds").relations
    for i, (_, _, values) in enumerate(TYPES):
        for text, _ in values:
            writer.execute(f"INSERT INTO kinds (c{i}) VALUES (?)", text)
    names = [t.split("(")[0] for t, _, _ in TYPES]
    assert [c.keyable for c in relation.columns] == [
        n in KEYABLE or n == "timestamp" for n in names
    ]
    snapshot = postgres.source("kinds").snapshot()
    for i, (_, spark, values) in enumerate(TYPES):
        if relation.columns[i].keyable:
            wanted = pa.array([v for _, v in values], arrow_type(spark))
            found = answer(snapshot, relation, [i], key=i, values=wanted)
            assert found == Counter((v,) for _, v in values), names[i]
    snapshot.close()


def test_lookup_values_that_the_type_cannot_hold_match_nothing(postgres: PostgresWorld) -> None:
    postgres.table("t", "u uuid, d date, s timestamp, b bytea")
    (relation,) = postgres.watch("t").relations
    snapshot = postgres.source("t").snapshot()
    impossible = [
        (0, pa.array(["not a uuid", "'; DROP TABLE t; --", "{}"])),
        (1, pa.array([-(2**31), 2**31 - 1], pa.int32()).view(pa.date32())),
        (2, pa.array([-(2**63), 2**63 - 1], pa.int64()).view(pa.timestamp("us"))),
        (3, pa.array([b"", b"\\x"])),
    ]
    for key, values in impossible:
        assert answer(snapshot, relation, [key], key=key, values=values) == Counter()
    snapshot.close()


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("numeric", "NaN"),
        ("numeric", "Infinity"),
        ("numeric", "0.1234567890123456789"),
        ("numeric", "1e30"),
        ("date", "infinity"),
        ("date", "0044-03-15 BC"),
        ("date", "10000-01-01"),
        ("timestamp", "-infinity"),
        ("timestamptz", "0044-03-15 00:00:00+00 BC"),
    ],
)
def test_a_value_that_cannot_be_kept_is_named_and_loses_its_column_only(
    postgres: PostgresWorld, kind: str, text: str
) -> None:
    postgres.table("t", f"id integer PRIMARY KEY, v {kind}, w integer")
    watch = postgres.watch("t")
    writer = postgres.writer()
    writer.execute("INSERT INTO t VALUES (1, NULL, 5)")
    writer.execute("INSERT INTO t VALUES (2, ?, 6)", text)
    writer.execute("INSERT INTO t VALUES (3, NULL, 7)")
    watch.drain()
    assert list(watch.lost) == [("t", "v")]
    assert '"v" of "src.public.t"' in watch.lost["t", "v"]
    assert "(id) = (2)" in watch.lost["t", "v"]
    assert [x.seq for c in watch.chunks for x in c.lost] == [2]
    assert watch.replay(watch.relations[0]) == Counter([(1, None, 5), (2, None, 6), (3, None, 7)])
    snapshot = watch.source.snapshot()
    with pytest.raises(ColumnLost, match=r'"v" of "src.public.t".*\(id\) = \(2\)'):
        answer(snapshot, watch.relations[0], [1])
    assert answer(snapshot, watch.relations[0], [2]) == Counter([(5,), (6,), (7,)])
    snapshot.close()


@pytest.mark.parametrize(
    "kind",
    ["numeric(39,0)", "numeric(5,-2)", "numeric(3,5)", "interval", "integer[]", "time", "money"],
)
def test_a_type_without_an_exact_spark_type_is_left_out(postgres: PostgresWorld, kind: str) -> None:
    postgres.needs(15 if kind in ("numeric(5,-2)", "numeric(3,5)") else 14)
    postgres.table("t", f"id integer, v {kind}")
    source = postgres.source("t")
    (relation,) = source.schemas()
    assert [c.name for c in relation.columns] == ["id"]
    assert list(source.unsupported()[relation.name]) == ["v"]


def test_a_column_with_a_nondeterministic_collation_is_not_keyable(postgres: PostgresWorld) -> None:
    writer = postgres.writer()
    try:
        writer.execute(
            "CREATE COLLATION ci"
            " (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
        )
    except psycopg.errors.FeatureNotSupported:
        pytest.skip("this PostgreSQL was built without ICU")
    postgres.table("t", "a text COLLATE ci, b text")
    (relation,) = postgres.source("t").schemas()
    assert [c.keyable for c in relation.columns] == [False, True]


@pytest.mark.parametrize("when", ["DEFERRABLE", "DEFERRABLE INITIALLY DEFERRED"])
def test_a_deferrable_primary_key_is_no_key_but_still_names_rows(
    postgres: PostgresWorld, when: str
) -> None:
    postgres.table("t", f"id integer PRIMARY KEY {when}, v numeric(8,2)")
    watch = postgres.watch("t")
    (relation,) = watch.relations
    assert (relation.key, relation.primary) == ((), ("id",))
    writer = postgres.writer()
    writer.execute("INSERT INTO t VALUES (1, 1), (2, 2)")
    # two rows with one key between the changes of one transaction
    writer.execute("UPDATE t SET id = 3 - id")
    writer.execute("INSERT INTO t VALUES (7, 'NaN')")
    watch.drain()
    assert "(id) = (7)" in watch.lost["t", "v"]


def test_an_unchanged_toast_value_is_taken_from_the_old_row(postgres: PostgresWorld) -> None:
    postgres.table("t", "id integer PRIMARY KEY, big text, n integer, empty text")
    writer = postgres.writer()
    writer.execute("ALTER TABLE t ALTER COLUMN big SET STORAGE EXTERNAL")
    watch = postgres.watch("t")
    writer.execute(
        "INSERT INTO t VALUES (1, repeat('x', 100000), 1), (2, NULL, 1), (3, 'short', 1)"
    )
    writer.execute("UPDATE t SET n = 2")
    watch.drain()
    expected = Counter([(1, "x" * 100_000, 2, None), (2, None, 2, None), (3, "short", 2, None)])
    assert watch.replay(watch.relations[0]) == expected


def test_truncate_loses_the_relation_and_no_other(postgres: PostgresWorld) -> None:
    postgres.table("t", "id integer, n integer")
    postgres.table("u", "id integer")
    watch = postgres.watch("t", "u")
    writer = postgres.writer()
    writer.execute("INSERT INTO t VALUES (1, 1)")
    writer.execute("TRUNCATE t")
    writer.execute("INSERT INTO u VALUES (1)")
    watch.drain()
    assert set(watch.lost) == {("t", None)}
    assert "TRUNCATE" in watch.lost["t", None]
    assert [(t.seq, t.rows) for t in watch.transactions] == [(1, 1), (2, 0), (3, 1)]
    assert {x.seq for c in watch.chunks for x in c.lost} == {2}


def test_every_truncate_is_told(postgres: PostgresWorld) -> None:
    postgres.table("t", "id integer, n integer")
    watch = postgres.watch("t")
    writer = postgres.writer()
    for number in range(2):
        writer.execute("INSERT INTO t VALUES (?, 1)", number)
        writer.execute("TRUNCATE t")
    watch.drain()
    assert losses(watch) == [(None, 2), (None, 4)]


def test_every_bad_value_is_told_once_per_transaction_and_good_ones_are_kept(
    postgres: PostgresWorld,
) -> None:
    postgres.table("t", "id integer PRIMARY KEY, v numeric(8,2)")
    watch = postgres.watch("t")
    writer = postgres.writer()
    writer.execute("INSERT INTO t VALUES (1, 1), (2, 'NaN'), (3, 3), (4, 'NaN')")
    writer.execute("INSERT INTO t VALUES (5, 5)")
    writer.execute("INSERT INTO t VALUES (6, 'NaN'), (7, 7)")
    watch.drain()
    writer.execute("INSERT INTO t VALUES (8, 'NaN'), (9, 9)")
    watch.drain()
    assert losses(watch) == [("v", 1), ("v", 3), ("v", 4)]
    rows = [(1, 1), (2, None), (3, 3), (4, None), (5, 5), (6, None), (7, 7), (8, None), (9, 9)]
    assert watch.replay(watch.relations[0]) == Counter(rows)


def test_every_transaction_without_whole_old_rows_is_told(postgres: PostgresWorld) -> None:
    """Their rows are not in the stream; a view made anew after the first must hear of the next."""
    postgres.table("t", "id integer PRIMARY KEY")
    watch = postgres.watch("t")
    writer = postgres.writer()
    writer.execute("ALTER TABLE t REPLICA IDENTITY DEFAULT")
    writer.execute("INSERT INTO t VALUES (1), (2)")
    writer.execute("INSERT INTO t VALUES (3)")
    watch.drain()
    assert losses(watch)[:2] == [(None, 1), (None, 2)]


def test_a_truncate_never_comes_between_a_snapshot_and_its_reads(postgres: PostgresWorld) -> None:
    postgres.table("t", "id integer")
    watch = postgres.watch("t")
    writer = postgres.writer()
    writer.execute("INSERT INTO t VALUES (1)")
    snapshot = watch.source.snapshot()
    truncating = threading.Thread(target=writer.execute, args=("TRUNCATE t",))
    truncating.start()
    waiting = "SELECT 1 FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'"
    while not postgres.writer().execute(waiting):
        pass
    assert answer(snapshot, watch.relations[0]) == Counter([(1,)])
    snapshot.close()
    truncating.join()


def test_dropped_and_retyped_columns_are_lost(postgres: PostgresWorld) -> None:
    postgres.table("t", "id integer, a integer, b varchar(5), c integer")
    watch = postgres.watch("t")
    writer = postgres.writer()
    writer.execute("INSERT INTO t VALUES (1, 1, 'x', 1)")
    watch.drain()
    writer.execute("ALTER TABLE t DROP COLUMN a")
    writer.execute("ALTER TABLE t ALTER COLUMN b TYPE varchar(10)")
    writer.execute("ALTER TABLE t ALTER COLUMN c TYPE bigint")
    writer.execute("INSERT INTO t VALUES (2, 'longer', 5)")
    watch.drain()
    assert set(watch.lost) >= {("t", "a"), ("t", "c")}
    assert "dropped" in watch.lost["t", "a"]
    assert 'from "integer" to "bigint"' in watch.lost["t", "c"]
    last = images(watch.chunks, watch.relations[0].name)[-1]
    assert (last["c0"], last["c1"], last["c2"], last["c3"]) == (2, None, "longer", None)


def test_a_layout_that_changes_inside_a_chunk_is_decoded_by_its_own(
    postgres: PostgresWorld,
) -> None:
    postgres.table("t", "id integer, b text")
    watch = postgres.watch("t")
    writer = postgres.writer()
    writer.execute("INSERT INTO t VALUES (1, 'one')")
    writer.execute("ALTER TABLE t ADD COLUMN x text")
    writer.execute("INSERT INTO t VALUES (2, 'two', 'new')")
    writer.execute("ALTER TABLE t DROP COLUMN x")
    writer.execute("UPDATE t SET b = 'three' WHERE id = 1")
    watch.drain()
    assert watch.replay(watch.relations[0]) == Counter([(1, "three"), (2, "two")])
    assert watch.lost == {}


def test_a_renamed_table_is_lost(postgres: PostgresWorld) -> None:
    postgres.table("t", "id integer")
    watch = postgres.watch("t")
    writer = postgres.writer()
    writer.execute("INSERT INTO t VALUES (1)")
    watch.drain()
    writer.execute("ALTER TABLE t RENAME TO t2")
    writer.execute("INSERT INTO t2 VALUES (2)")
    watch.take_transaction()
    assert set(watch.lost) == {("t", None)}


def test_a_table_made_anew_and_published_by_hand_is_lost_in_the_stream(
    postgres: PostgresWorld,
) -> None:
    postgres.table("t", "id integer")
    watch = postgres.watch("t")
    writer = postgres.writer()
    writer.execute("INSERT INTO t VALUES (1)")
    watch.take_transaction()
    writer.execute("DROP TABLE t")
    postgres.table("t", "id integer")
    writer.execute(f"ALTER PUBLICATION {postgres.publication} ADD TABLE t")
    writer.execute("INSERT INTO t VALUES (2)")
    watch.take_transaction()
    assert set(watch.lost) == {("t", None)}


def test_losing_the_full_identity_loses_the_relation(postgres: PostgresWorld) -> None:
    postgres.table("t", "id integer PRIMARY KEY, n integer")
    watch = postgres.watch("t")
    writer = postgres.writer()
    writer.execute("INSERT INTO t VALUES (1, 1)")
    watch.drain()
    writer.execute("ALTER TABLE t REPLICA IDENTITY DEFAULT")
    writer.execute("UPDATE t SET n = 2")
    watch.drain()
    assert set(watch.lost) == {("t", None)}
    assert "REPLICA IDENTITY FULL" in watch.lost["t", None]


def test_a_table_without_full_identity_is_refused_with_the_exact_command(
    postgres: PostgresWorld,
) -> None:
    writer = postgres.writer()
    writer.execute('CREATE TABLE "My Orders" (id integer PRIMARY KEY)')
    source = postgres.source('"My Orders"')
    with pytest.raises(SourceRefused) as caught:
        source.prepare(source.schemas())
    command = 'ALTER TABLE "public"."My Orders" REPLICA IDENTITY FULL;'
    assert caught.value.hint == f"run: {command}"
    assert postgres.traces() == []
    writer.execute(command)
    assert source.prepare(source.schemas())


def test_stored_generated_columns_are_captured_and_updates_still_work(
    postgres: PostgresWorld,
) -> None:
    postgres.needs(18)
    postgres.table("t", "id integer, twice integer GENERATED ALWAYS AS (id * 2) STORED")
    watch = postgres.watch("t")
    writer = postgres.writer()
    writer.execute("INSERT INTO t VALUES (1)")
    writer.execute("UPDATE t SET id = 2")
    watch.drain()
    assert watch.replay(watch.relations[0]) == Counter([(2, 4)])


def test_before_18_a_stored_generated_column_is_left_out(postgres: PostgresWorld) -> None:
    if postgres.version >= 18:
        pytest.skip("from PostgreSQL 18 on it is captured")
    postgres.table("t", "id integer, twice integer GENERATED ALWAYS AS (id * 2) STORED, v text")
    watch = postgres.watch("t")
    assert list(watch.source.unsupported()[watch.relations[0].name]) == ["twice"]
    writer = postgres.writer()
    writer.execute("INSERT INTO t VALUES (1, DEFAULT, 'one')")
    writer.execute("UPDATE t SET id = 2")
    watch.drain()
    assert watch.replay(watch.relations[0]) == Counter([(2, "one")])


def test_a_table_with_virtual_generated_columns_is_refused(postgres: PostgresWorld) -> None:
    postgres.needs(18)
    postgres.table("t", "id integer, twice integer GENERATED ALWAYS AS (id * 2) VIRTUAL")
    with pytest.raises(SourceRefused, match="virtual generated column"):
        postgres.source("t").schemas()


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE t (id integer) PARTITION BY RANGE (id)",
        "CREATE UNLOGGED TABLE t (id integer)",
        "CREATE TABLE t (id integer); CREATE TABLE child () INHERITS (t)",
        "CREATE MATERIALIZED VIEW t AS SELECT 1 AS id",
    ],
)
def test_relations_that_are_no_plain_tables_are_refused(
    postgres: PostgresWorld, statement: str
) -> None:
    postgres.writer().execute(statement)
    with pytest.raises(SourceRefused, match=r'"public.t" at source "src" is'):
        postgres.source("t").schemas()


@pytest.mark.parametrize(
    ("part", "since"), [("WHERE (id > 5)", 15), ("(id)", 15), ("WITH (publish = 'insert')", 14)]
)
def test_a_publication_that_leaves_changes_out_is_refused(
    postgres: PostgresWorld, part: str, since: int
) -> None:
    postgres.needs(since)
    postgres.table("t", "id integer")
    writer = postgres.writer()
    writer.execute(f"CREATE PUBLICATION {postgres.publication} FOR TABLE t {part}")
    source = postgres.source("t")
    with pytest.raises(SourceRefused, match="leaves some changes out"):
        source.prepare(source.schemas())


def lesser(postgres: PostgresWorld) -> Source:
    """A prepared source of "t" as the README sets it up: the owner's publication, another role."""
    postgres.table("t", "id integer")
    writer = postgres.writer()
    writer.execute(f"CREATE PUBLICATION {postgres.publication} FOR TABLE ONLY t")
    writer.execute("CREATE ROLE lesser LOGIN REPLICATION; GRANT SELECT ON t TO lesser")
    url = postgres.database.url.replace("postgres:@", "lesser@")
    source = open_source("src", {**postgres.settings, "url": url, "tables": ["t"]}, Path())
    source.prepare(source.schemas())
    return source


def test_a_table_that_is_known_waits_for_no_open_transaction(postgres: PostgresWorld) -> None:
    writer = postgres.writer()
    try:
        source = lesser(postgres)
        relations = source.schemas()
        writer.execute("BEGIN; INSERT INTO t VALUES (1)")
        started = time.monotonic()
        assert source.prepare(relations) == []
        assert time.monotonic() - started < 20
        writer.execute("ROLLBACK")
        source.close()
    finally:
        writer.execute("DROP OWNED BY lesser; DROP ROLE lesser")


def test_a_publication_without_a_tables_generated_columns_is_refused_with_the_exact_command(
    postgres: PostgresWorld,
) -> None:
    postgres.needs(18)
    postgres.table("t", "id integer, twice integer GENERATED ALWAYS AS (id * 2) STORED")
    writer = postgres.writer()
    writer.execute(f"CREATE PUBLICATION {postgres.publication} FOR TABLE ONLY t")
    source = postgres.source("t")
    with pytest.raises(SourceRefused, match="generated columns") as caught:
        source.prepare(source.schemas())
    assert caught.value.hint is not None
    writer.execute(caught.value.hint.partition(": ")[2])
    assert source.prepare(source.schemas())


def test_a_lost_publication_is_a_definite_error(postgres: PostgresWorld) -> None:
    postgres.table("t", "id integer")
    watch = postgres.watch("t")
    postgres.writer().execute(f"DROP PUBLICATION {postgres.publication}")
    with pytest.raises(ChangesLost, match="lost its publication"):
        watch.source.prepare(watch.relations)


def test_a_missing_slot_is_a_definite_error(postgres: PostgresWorld) -> None:
    postgres.table("t", "id integer")
    watch = postgres.watch("t")
    watch.monitor.close()
    postgres.wait_until_unread()
    postgres.writer().execute("SELECT pg_drop_replication_slot(?)", postgres.slot)
    with pytest.raises(ChangesLost, match="no longer keeps the changes"):
        watch.source.monitor(watch.relations, watch.start, 1)
    watch.source.prepare(watch.relations)
    with pytest.raises(ChangesLost, match="now starts at"):
        watch.source.monitor(watch.relations, watch.start, 1)


def test_a_slot_that_somebody_reads_is_unavailable(
    postgres: PostgresWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slot, "NOTICED", 0.1)
    postgres.table("t", "id integer")
    watch = postgres.watch("t")
    with pytest.raises(SourceUnavailable, match="being read"):
        watch.source.monitor(watch.relations, watch.start, 1)
    with pytest.raises(SourceUnavailable, match="being read"):
        watch.source.remove()


def test_a_slot_of_another_database_is_refused(postgres: PostgresWorld) -> None:
    postgres.table("t", "id integer")
    admin = shared_postgres().connect()
    create = "SELECT pg_create_logical_replication_slot('steadyview_elsewhere', 'pgoutput')"
    admin.execute(create)
    try:
        postgres.settings["slot"] = "steadyview_elsewhere"
        source = postgres.source("t")
        with pytest.raises(SourceRefused, match="belongs to something else"):
            source.prepare(source.schemas())
        assert source.remove() == []
    finally:
        admin.execute("SELECT pg_drop_replication_slot('steadyview_elsewhere')")
        admin.close()


def as_role(postgres: PostgresWorld, role: str, table: str) -> Source:
    """The world's source, seen by a role with a password."""
    url = postgres.database.url.replace("postgres:@", f"{role}:s3cr%40t@")
    return open_source("src", {**postgres.settings, "url": url, "tables": [table]}, Path())


def test_a_role_without_replication_is_refused_with_the_exact_command(
    postgres: PostgresWorld,
) -> None:
    postgres.table("t", "id integer")
    writer = postgres.writer()
    writer.execute("CREATE ROLE plain LOGIN")
    try:
        writer.execute("GRANT CREATE ON DATABASE " + postgres.database.name + " TO plain")
        writer.execute("ALTER TABLE t OWNER TO plain")
        source = as_role(postgres, "plain", "t")
        with pytest.raises(SourceRefused) as caught:
            source.prepare(source.schemas())
        assert caught.value.hint == 'run as a superuser: ALTER ROLE "plain" REPLICATION;'
        writer.execute("ALTER ROLE plain REPLICATION")
        assert source.prepare(source.schemas())
        source.remove()
        source.close()
    finally:
        writer.execute("DROP OWNED BY plain; DROP ROLE plain")


def test_a_role_that_may_not_publish_is_refused_with_the_exact_command(
    postgres: PostgresWorld,
) -> None:
    postgres.table("t", "id integer")
    writer = postgres.writer()
    writer.execute("CREATE ROLE guest LOGIN REPLICATION; GRANT SELECT ON t TO guest")
    try:
        source = as_role(postgres, "guest", "t")
        with pytest.raises(SourceRefused) as caught:
            source.prepare(source.schemas())
        assert caught.value.hint is not None
        command = caught.value.hint.removeprefix("run as the tables' owner: ")
        writer.execute(command)
        assert source.prepare(source.schemas())
        source.close()
    finally:
        writer.execute("DROP OWNED BY guest; DROP ROLE guest")


def test_every_obstacle_is_told_with_its_command_before_anything_is_changed(
    postgres: PostgresWorld,
) -> None:
    writer = postgres.writer()
    writer.execute("CREATE TABLE t (id integer)")
    writer.execute("CREATE SCHEMA apart; CREATE TABLE apart.u (id integer)")
    writer.execute("CREATE ROLE stranger LOGIN")
    try:
        url = postgres.database.url.replace("postgres:@", "stranger@")
        settings = {**postgres.settings, "url": url, "tables": ["t", "apart.u"]}
        source = open_source("src", settings, Path())
        obstacles = source.obstacles(source.schemas())
        assert postgres.traces() == []
        with pytest.raises(SourceRefused, match="whole old rows"):
            source.prepare(source.schemas())
        for obstacle in obstacles:
            assert obstacle.hint is not None
            writer.execute(obstacle.hint.partition(": ")[2])
        assert len(obstacles) == 5
        assert source.obstacles(source.schemas()) == []
        assert source.prepare(source.schemas())
        source.close()
    finally:
        writer.execute("DROP OWNED BY stranger; DROP ROLE stranger")


def test_row_security_makes_answers_fail_instead_of_hiding_rows(postgres: PostgresWorld) -> None:
    postgres.table("t", "id integer")
    writer = postgres.writer()
    postgres.watch("t")
    writer.execute("INSERT INTO t VALUES (1); ALTER TABLE t ENABLE ROW LEVEL SECURITY")
    writer.execute("CREATE ROLE blind LOGIN REPLICATION; GRANT SELECT ON t TO blind")
    try:
        source = as_role(postgres, "blind", "t")
        (relation,) = source.schemas()
        snapshot = source.snapshot()
        with pytest.raises(SourceRefused, match="refused"):
            answer(snapshot, relation)
        snapshot.close()
        source.close()
    finally:
        writer.execute("DROP OWNED BY blind; DROP ROLE blind")


def test_a_silent_network_is_given_up_unless_the_url_is_more_patient() -> None:
    plain = conninfo.conninfo_to_dict(Address("src", "postgresql://u@host/db").conninfo())
    assert (plain["connect_timeout"], plain["tcp_user_timeout"]) == ("10", "60000")
    assert (plain["keepalives_idle"], plain["keepalives_count"]) == ("30", "3")
    patient = Address("src", "postgresql://u@host/db?connect_timeout=90&keepalives_idle=600")
    own = conninfo.conninfo_to_dict(patient.conninfo(application_name="x"))
    assert (own["connect_timeout"], own["keepalives_idle"]) == ("90", "600")
    assert (own["tcp_user_timeout"], own["application_name"]) == ("60000", "x")


def test_a_server_that_never_answers_is_unavailable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        url = f"postgresql://u@127.0.0.1:{port}/db?connect_timeout=2"
        with pytest.raises(SourceUnavailable, match="does not answer"):
            Address("src", url).connect()


def test_no_error_shows_the_password(postgres: PostgresWorld) -> None:
    for url in (
        "postgresql://me:s3cr%40t@127.0.0.1:1/nowhere",
        postgres.database.url.replace("postgres:@", "absent:s3cr%40t@"),
        "postgresql://me:s3cr%40t@[nonsense/",
    ):
        with pytest.raises(Exception) as caught:  # noqa: PT011 - which one it is does not matter here
            open_source(
                "src", {"type": "postgresql", "url": url, "tables": ["t"]}, Path()
            ).schemas()
        texts = [str(caught.value), repr(caught.value), str(caught.value.__cause__)]
        assert not any("s3cr" in t for t in texts)


def test_a_server_without_logical_wal_is_refused_with_the_exact_command(tmp_path: Path) -> None:
    with embedded_postgres(tmp_path / "own" / "data", wal_level="replica") as server:
        connection = server.connect()
        connection.execute("CREATE TABLE t (id integer); ALTER TABLE t REPLICA IDENTITY FULL")
        settings = {"type": "postgresql", "url": server.url(), "tables": ["t"]}
        source = open_source("src", settings, tmp_path)
        with pytest.raises(SourceRefused) as caught:
            source.prepare(source.schemas())
        assert "ALTER SYSTEM SET wal_level = 'logical'" in str(caught.value.hint)
        source.close()
        connection.close()


def test_a_commit_held_by_a_missing_standby_is_delivered_but_not_reflected(
    postgres: PostgresWorld,
) -> None:
    postgres.table("t", "id integer")
    watch = postgres.watch("t")
    admin = shared_postgres().connect()
    admin.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    admin.execute("SELECT pg_reload_conf()")
    held: list[threading.Thread] = []
    try:
        number = hold_a_commit(postgres, held)
        local = postgres.writer()
        local.execute("SET synchronous_commit = local")
        local.execute("INSERT INTO t VALUES (-1)")
        snapshot = watch.source.snapshot()
        watch.catch_up(snapshot)
        delivered = {r["c0"]: r["_seq"] for r in images(watch.chunks, watch.relations[0].name)}
        reflected = {t.seq for t in watch.transactions if snapshot.reflects(t)}
        assert delivered[number] < delivered[-1]
        assert delivered[number] not in reflected
        assert delivered[-1] in reflected
        assert watch.replay(watch.relations[0], reflected) == answer(snapshot, watch.relations[0])
        assert (number,) not in answer(snapshot, watch.relations[0])
        snapshot.close()
    finally:
        admin.execute("ALTER SYSTEM RESET synchronous_standby_names")
        admin.execute("SELECT pg_reload_conf()")
        for thread in held:
            thread.join()
        admin.close()


def hold_a_commit(postgres: PostgresWorld, held: list[threading.Thread]) -> int:
    """Insert until a commit is held (the server reloads in its own time); the number it wrote."""
    waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND datname = ?"
    watcher = postgres.writer()
    for number in range(1000):
        writer = postgres.writer()
        writer.execute("SET synchronous_commit = on")
        thread = threading.Thread(target=writer.execute, args=("INSERT INTO t VALUES (?)", number))
        thread.start()
        held.append(thread)
        while thread.is_alive():
            if watcher.execute(waiting, postgres.database.name):
                return number
    raise AssertionError("no commit was held")


def test_the_nearest_epoch_decides_about_32_bit_numbers() -> None:
    start_of_epoch = 3 << 32
    visible = VisibleTransactions(
        start_of_epoch - 5, start_of_epoch + 10, frozenset({start_of_epoch - 5})
    )
    assert visible.shows(0xFFFFFFFF)
    assert not visible.shows(0xFFFFFFFB)
    assert visible.shows(9)
    assert not visible.shows(10)
    assert not VisibleTransactions(start_of_epoch - 9, start_of_epoch - 2, frozenset()).shows(3)


def test_a_snapshot_task_is_carried_out_by_another_process(postgres: PostgresWorld) -> None:
    postgres.table("t", "id integer")
    watch = postgres.watch("t")
    writer = postgres.writer()
    writer.execute("INSERT INTO t SELECT generate_series(1, 100)")
    snapshot = watch.source.snapshot()
    writer.execute("DELETE FROM t")
    (task,) = snapshot.tasks(Read(watch.relations[0], (0,)))
    assert not task.local
    script = (
        "import pickle, sys; task = pickle.load(sys.stdin.buffer);"
        "print(sum(b.num_rows for b in task.batches()))"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=pickle.dumps(task),
        capture_output=True,
        check=True,
        env={"PYTHONPATH": str(root / "src"), "PATH": "/usr/bin:/bin"},
    )
    assert done.stdout.strip() == b"100"
    assert "postgresql://" not in repr(task)
    snapshot.close()


def test_a_table_added_to_a_standing_slot_waits_for_open_transactions(
    postgres: PostgresWorld,
) -> None:
    """Rows written before the table was published, and committed after, would be in no stream."""
    postgres.table("t", "id integer")
    postgres.watch("t").monitor.close()
    postgres.table("late", "id integer")
    early = postgres.writer()
    early.execute("BEGIN")
    early.execute("INSERT INTO late VALUES (1)")
    source = postgres.source("t", "late")
    preparing = threading.Thread(target=source.prepare, args=(source.schemas(),))
    preparing.start()
    watcher = postgres.writer()
    waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = ?"
    while not watcher.execute(waiting, postgres.database.name):
        assert preparing.is_alive()
    assert preparing.is_alive()
    early.execute("COMMIT")
    preparing.join()
    snapshot = source.snapshot()
    assert answer(snapshot, source.schemas()[1]) == Counter([(1,)])
    snapshot.close()


def test_two_watches_on_one_database_do_not_disturb_each_other(postgres: PostgresWorld) -> None:
    postgres.table("t", "id integer")
    first = postgres.watch("t")
    postgres.settings["slot"] = postgres.slot + "_b"
    second = postgres.watch("t")
    postgres.writer().execute("INSERT INTO t VALUES (1)")
    for watch in (first, second):
        watch.drain()
        assert watch.replay(watch.relations[0]) == Counter([(1,)])
