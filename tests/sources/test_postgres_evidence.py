"""What is done to publications, tables and columns behind our back is found, or is harmless."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from steadyview.changes import Loss
from steadyview.errors import ColumnLost
from steadyview.sources.postgres import monitor as monitoring
from tests.sources.world import PostgresWorld, Watch, answer

PUBLICATION = "steadyview_src"
COLUMNS = "id integer PRIMARY KEY, b varchar(5), m mood, at timestamptz"


def watched(postgres: PostgresWorld) -> Watch:
    """Tables "t" and "u", watched, with a row each."""
    writer = postgres.writer()
    writer.execute("CREATE TYPE mood AS ENUM ('good', 'bad')")
    postgres.table("t", f"{COLUMNS}, a integer DEFAULT 7")
    postgres.table("u", "id integer PRIMARY KEY")
    watch = postgres.watch("t", "u")
    writer.execute("INSERT INTO t VALUES (1, 'x', 'good', now(), 1)")
    writer.execute("INSERT INTO u VALUES (1)")
    watch.drain()
    return watch


def examined(watch: Watch) -> set[tuple[str, str | None]]:
    """What a look finds lost; the evidence is remembered, as a warehouse does."""
    seen = watch.source.examine(watch.relations, watch.monitor.proof)
    remember(watch, seen.evidence)
    return {(x.relation.path[-1], x.column) for x in seen.losses}


def remember(watch: Watch, evidence: object) -> None:
    assert isinstance(evidence, dict)
    watch.relations = [
        replace(r, evidence=evidence.get(r.name, r.evidence)) for r in watch.relations
    ]


BOTH = {("t", None), ("u", None)}
TABLE = {("t", None)}
# what is done, in one statement each, and what is lost by it
LOSSES: dict[str, tuple[set[tuple[str, str | None]], list[str]]] = {
    "publication narrowed and widened": (
        BOTH,
        [
            f"ALTER PUBLICATION {PUBLICATION} SET (publish = 'insert')",
            "DELETE FROM t",
            f"ALTER PUBLICATION {PUBLICATION} SET (publish = 'insert, update, delete, truncate')",
        ],
    ),
    "publication via root and back": (
        BOTH,
        [
            f"ALTER PUBLICATION {PUBLICATION} SET (publish_via_partition_root = true)",
            f"ALTER PUBLICATION {PUBLICATION} SET (publish_via_partition_root = false)",
        ],
    ),
    "publication made anew": (
        BOTH,
        [
            f"DROP PUBLICATION {PUBLICATION}",
            f"CREATE PUBLICATION {PUBLICATION} FOR TABLE ONLY t, ONLY u",
        ],
    ),
    "taken out and put back": (
        TABLE,
        [
            f"ALTER PUBLICATION {PUBLICATION} DROP TABLE t",
            "INSERT INTO t VALUES (2)",
            f"ALTER PUBLICATION {PUBLICATION} ADD TABLE ONLY t",
        ],
    ),
    "dropped and made anew": (
        TABLE,
        [
            "DROP TABLE t",
            f"CREATE TABLE t ({COLUMNS}, a integer)",
            "ALTER TABLE t REPLICA IDENTITY FULL",
            f"ALTER PUBLICATION {PUBLICATION} ADD TABLE ONLY t",
        ],
    ),
    "swapped by renaming": (
        TABLE,
        [
            "CREATE TABLE new (LIKE t INCLUDING ALL)",
            "ALTER TABLE new REPLICA IDENTITY FULL",
            f"ALTER PUBLICATION {PUBLICATION} ADD TABLE ONLY new",
            "ALTER TABLE t RENAME TO old; ALTER TABLE new RENAME TO t",
        ],
    ),
    "column dropped and added again": (
        {("t", "a")},
        ["ALTER TABLE t DROP COLUMN a", "ALTER TABLE t ADD COLUMN a integer DEFAULT 7"],
    ),
    "columns swapped": (
        {("t", "id"), ("t", "a")},
        [
            "ALTER TABLE t RENAME COLUMN a TO x",
            "ALTER TABLE t RENAME COLUMN id TO a",
            "ALTER TABLE t RENAME COLUMN x TO id",
        ],
    ),
    "column renamed": ({("t", "b")}, ["ALTER TABLE t RENAME COLUMN b TO c"]),
    "column retyped": ({("t", "a")}, ["ALTER TABLE t ALTER COLUMN a TYPE bigint"]),
    "column retyped within one Spark type": (
        {("t", "b")},
        ["ALTER TABLE t ALTER COLUMN b TYPE uuid USING gen_random_uuid()"],
    ),
    "column narrowed": ({("t", "at")}, ["ALTER TABLE t ALTER COLUMN at TYPE timestamptz(0)"]),
    "column computed anew": (
        {("t", "a")},
        ["ALTER TABLE t ALTER COLUMN a TYPE integer USING a * 100"],
    ),
    "enum label renamed": ({("t", "m")}, ["ALTER TYPE mood RENAME VALUE 'good' TO 'fine'"]),
    "enum label renamed and back": (
        {("t", "m")},
        [
            "ALTER TYPE mood RENAME VALUE 'good' TO 'fine'",
            "INSERT INTO t VALUES (2, 'y', 'fine')",
            "ALTER TYPE mood RENAME VALUE 'fine' TO 'good'",
        ],
    ),
    "enum labels swapped": (
        {("t", "m")},
        [
            "ALTER TYPE mood RENAME VALUE 'good' TO 'x'",
            "ALTER TYPE mood RENAME VALUE 'bad' TO 'good'",
            "ALTER TYPE mood RENAME VALUE 'x' TO 'bad'",
        ],
    ),
    "enum replaced by another of its name": (
        {("t", "m")},
        [
            "ALTER TYPE mood RENAME TO old_mood",
            "CREATE TYPE mood AS ENUM ('good', 'bad')",
            "ALTER TABLE t ALTER COLUMN m TYPE mood"
            " USING CASE m::text WHEN 'good' THEN 'bad'::mood ELSE 'good'::mood END",
        ],
    ),
}


@pytest.mark.parametrize("done", LOSSES)
def test_what_may_be_missing_is_told_once_and_then_adopted(
    postgres: PostgresWorld, done: str
) -> None:
    watch = watched(postgres)
    assert examined(watch) == set()
    lost, statements = LOSSES[done]
    writer = postgres.writer()
    for statement in statements:
        writer.execute(statement)
    found = examined(watch)
    if postgres.version < 18 and "column" in done + statements[-1].lower():
        # there ALTER TYPE writes the catalog rows of the columns behind, too
        assert found >= lost
        assert {t for t, _ in found} == {"t"}
    else:
        assert found == lost
    assert examined(watch) == set()


HARMLESS: dict[str, list[str]] = {
    "vacuum full": ["VACUUM FULL t"],
    "cluster": ["CLUSTER t USING t_pkey"],
    "defaults and statistics": [
        "ALTER TABLE t ALTER COLUMN a SET DEFAULT 9",
        "ALTER TABLE t ALTER COLUMN a SET STATISTICS 500",
    ],
    "a column added, with a default and without": [
        "ALTER TABLE t ADD COLUMN x integer DEFAULT 3",
        "ALTER TABLE t ADD COLUMN y uuid DEFAULT gen_random_uuid()",
    ],
    "a type made wider": ["ALTER TABLE t ALTER COLUMN b TYPE varchar(50)"],
    "an enum label added": ["ALTER TYPE mood ADD VALUE 'mixed'"],
    "an enum label added before": ["ALTER TYPE mood ADD VALUE 'mixed' BEFORE 'good'"],
    "catalogs frozen": [
        f"VACUUM (FREEZE) {catalog}"
        for catalog in ("pg_enum", "pg_attribute", "pg_class", "pg_publication")
    ],
    "catalogs written anew": [
        "VACUUM (FULL, FREEZE) pg_enum",
        "VACUUM (FULL, FREEZE) pg_publication_rel",
    ],
    "indexes and constraints": [
        "CREATE INDEX ON t (a)",
        "ALTER TABLE t ADD CHECK (a < 1000000)",
    ],
    "another table published": [
        "CREATE TABLE z (id integer PRIMARY KEY)",
        f"ALTER PUBLICATION {PUBLICATION} ADD TABLE z",
    ],
    "writes and truncate, which the stream tells": ["DELETE FROM t", "TRUNCATE t"],
    "rights": ["GRANT SELECT ON t TO PUBLIC"],
}


@pytest.mark.parametrize("done", HARMLESS)
def test_what_is_harmless_is_no_loss(postgres: PostgresWorld, done: str) -> None:
    watch = watched(postgres)
    writer = postgres.writer()
    for statement in HARMLESS[done]:
        writer.execute(statement)
    assert examined(watch) == set()


def test_a_default_written_into_old_rows_is_no_rewrite_of_values(postgres: PostgresWorld) -> None:
    """VACUUM FULL writes the catalog rows of such columns, as ALTER TYPE does."""
    watch = watched(postgres)
    writer = postgres.writer()
    writer.execute("ALTER TABLE u ADD COLUMN x integer DEFAULT 3")
    watch.relations = list(watch.source.schemas())
    assert examined(watch) == set()
    writer.execute("VACUUM FULL u")
    assert examined(watch) == set()
    writer.execute("ALTER TABLE u ADD COLUMN y integer DEFAULT 3")
    watch.relations = list(watch.source.schemas())
    writer.execute("ALTER TABLE u ALTER COLUMN y TYPE integer USING y + 1")
    assert examined(watch) == {("u", "y")}


def test_a_generated_column_computed_by_another_expression_is_lost(
    postgres: PostgresWorld,
) -> None:
    postgres.needs(18)
    postgres.table("t", "id integer, twice integer GENERATED ALWAYS AS (id * 2) STORED")
    watch = postgres.watch("t")
    writer = postgres.writer()
    writer.execute("INSERT INTO t VALUES (1)")
    writer.execute("ALTER TABLE t ALTER COLUMN twice SET EXPRESSION AS (id * 3)")
    assert examined(watch) == {("t", "twice")}


NOW = {
    "narrowed": f"ALTER PUBLICATION {PUBLICATION} SET (publish = 'insert')",
    "via root": f"ALTER PUBLICATION {PUBLICATION} SET (publish_via_partition_root = true)",
    "taken out": f"ALTER PUBLICATION {PUBLICATION} DROP TABLE t",
    "filtered": f"ALTER PUBLICATION {PUBLICATION} SET TABLE t WHERE (id > 5), u",
    "some columns": f"ALTER PUBLICATION {PUBLICATION} SET TABLE t (id, a), u",
    "no identity": "ALTER TABLE t REPLICA IDENTITY DEFAULT",
}


@pytest.mark.parametrize("done", NOW)
def test_a_relation_whose_changes_are_being_lost_is_refused_until_the_told_command_was_run(
    postgres: PostgresWorld, done: str
) -> None:
    postgres.needs(15 if done in ("filtered", "some columns") else 14)
    watch = watched(postgres)
    writer = postgres.writer()
    writer.execute(NOW[done])
    for _ in range(2):
        assert ("t", None) in examined(watch)
    relation = watch.relations[0]
    snapshot = watch.source.snapshot()
    with pytest.raises(ColumnLost, match="are being lost") as refused:
        answer(snapshot, relation)
    snapshot.close()
    assert refused.value.column is None
    writer.execute(str(refused.value.hint).partition(": ")[2])
    examined(watch)
    assert examined(watch) == set()
    snapshot = watch.source.snapshot()
    assert len(answer(snapshot, relation)) == 1
    snapshot.close()


def test_a_table_that_is_gone_is_lost(postgres: PostgresWorld) -> None:
    watch = watched(postgres)
    postgres.writer().execute("DROP TABLE t")
    for _ in range(2):
        assert examined(watch) == {("t", None)}
    snapshot = watch.source.snapshot()
    with pytest.raises(ColumnLost, match="dropped or renamed"):
        answer(snapshot, watch.relations[0])
    snapshot.close()


def told(watch: Watch, wanted: Callable[[Loss], bool]) -> Loss:
    """The first such loss that comes in the stream."""
    while True:
        found = [x for x in watch.take().lost if wanted(x)]
        if found:
            return found[0]


def test_a_running_monitor_looks_by_itself_and_tells_each_loss_once(
    postgres: PostgresWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitoring, "LOOK_SECONDS", 0.0)
    watch = watched(postgres)
    writer = postgres.writer()
    writer.execute(f"ALTER PUBLICATION {PUBLICATION} DROP TABLE t")
    loss = told(watch, lambda x: x.relation.path[-1] == "t")
    assert "is not in publication" in loss.reason
    assert loss.seq == watch.transactions[-1].seq
    assert abs(watch.transactions[-1].committed / 1e6 - time.time()) < 60
    writer.execute("INSERT INTO u VALUES (2)")
    watch.drain()
    assert len([x for c in watch.chunks for x in c.lost]) == 1
    writer.execute(f"ALTER PUBLICATION {PUBLICATION} ADD TABLE ONLY t")
    assert "left the publication" in told(watch, lambda x: True).reason
    assert [t.seq for t in watch.transactions] == list(range(1, len(watch.transactions) + 1))


def test_a_loss_that_was_told_in_the_stream_does_not_keep_a_new_snapshot_from_being_used(
    postgres: PostgresWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitoring, "LOOK_SECONDS", 0.0)
    watch = watched(postgres)
    writer = postgres.writer()
    for statement in LOSSES["dropped and made anew"][1]:
        writer.execute(statement)
    told(watch, lambda x: x.relation.path[-1] == "t")
    examined(watch)
    writer.execute("INSERT INTO t VALUES (5, 'e', 'bad', NULL, 5)")
    base = watch.source.snapshot()
    assert answer(base, watch.relations[0], [0]) == Counter([(5,)])
    writer.execute("INSERT INTO t VALUES (6, 'f', 'bad', NULL, 6)")
    watch.drain()
    unseen = [t.seq for t in watch.transactions if not base.reflects(t)]
    rows = answer(base, watch.relations[0]) + watch.replay(watch.relations[0], unseen)
    assert {r[0] for r in rows} == {5, 6}
    assert examined(watch) == set()
    base.close()


def test_a_leaf_that_arrives_under_its_roots_name_is_lost(postgres: PostgresWorld) -> None:
    writer = postgres.writer()
    writer.execute("CREATE TABLE root (id integer) PARTITION BY RANGE (id)")
    writer.execute("CREATE TABLE leaf PARTITION OF root FOR VALUES FROM (0) TO (100)")
    writer.execute("ALTER TABLE leaf REPLICA IDENTITY FULL")
    watch = postgres.watch("leaf")
    writer.execute("INSERT INTO leaf VALUES (1)")
    writer.execute(f"ALTER PUBLICATION {PUBLICATION} ADD TABLE root")
    assert examined(watch) == set()
    writer.execute(f"ALTER PUBLICATION {PUBLICATION} SET (publish_via_partition_root = true)")
    assert examined(watch) == {("leaf", None)}


def test_a_root_that_joins_the_publication_for_a_while_takes_nothing_from_its_leaf(
    postgres: PostgresWorld,
) -> None:
    writer = postgres.writer()
    writer.execute("CREATE TABLE root (id integer) PARTITION BY RANGE (id)")
    writer.execute("CREATE TABLE leaf PARTITION OF root FOR VALUES FROM (0) TO (100)")
    writer.execute("ALTER TABLE leaf REPLICA IDENTITY FULL")
    watch = postgres.watch("leaf")
    writer.execute(f"ALTER PUBLICATION {PUBLICATION} ADD TABLE root")
    writer.execute("INSERT INTO root VALUES (1)")
    writer.execute(f"ALTER PUBLICATION {PUBLICATION} DROP TABLE root")
    writer.execute("INSERT INTO root VALUES (2)")
    watch.drain()
    assert (watch.lost, examined(watch)) == ({}, set())
    assert watch.replay(watch.relations[0]) == Counter([(1,), (2,)])


def test_a_change_made_under_another_identity_is_told_by_the_stream(
    postgres: PostgresWorld,
) -> None:
    """The catalog shows nothing once the identity is back."""
    watch = watched(postgres)
    writer = postgres.writer()
    writer.execute("ALTER TABLE t REPLICA IDENTITY DEFAULT")
    writer.execute("DELETE FROM t")
    writer.execute("ALTER TABLE t REPLICA IDENTITY FULL")
    assert examined(watch) == set()
    watch.drain()
    assert set(watch.lost) == {("t", None)}


def test_rows_written_under_the_replica_role_are_captured(postgres: PostgresWorld) -> None:
    watch = watched(postgres)
    writer = postgres.writer()
    writer.execute("SET session_replication_role = replica")
    writer.execute("INSERT INTO u VALUES (2)")
    writer.execute("DELETE FROM u WHERE id = 1")
    watch.drain()
    assert watch.replay(watch.relations[1]) == Counter([(2,)])


def test_what_an_older_catalog_recorded_is_adopted(postgres: PostgresWorld) -> None:
    watch = watched(postgres)
    watch.relations = [replace(r, evidence="") for r in watch.relations]
    for statement in LOSSES["taken out and put back"][1]:
        postgres.writer().execute(statement)
    assert examined(watch) == set()
    assert all(r.evidence for r in watch.relations)


def test_enum_labels_of_an_older_catalog_are_adopted(postgres: PostgresWorld) -> None:
    watch = watched(postgres)
    recorded = json.loads(watch.relations[0].evidence)
    labels = recorded["columns"]["m"]["labels"]
    recorded["columns"]["m"]["labels"] = {oid: label for oid, (label, _) in labels.items()}
    remember(watch, {watch.relations[0].name: json.dumps(recorded)})
    assert examined(watch) == set()
    remember(watch, {watch.relations[0].name: json.dumps(recorded)})
    postgres.writer().execute("ALTER TYPE mood RENAME VALUE 'good' TO 'fine'")
    assert examined(watch) == {("t", "m")}


def test_a_table_outside_the_publication_has_no_evidence_yet(postgres: PostgresWorld) -> None:
    postgres.table("t", "id integer")
    source = postgres.source("t")
    assert source.schemas()[0].evidence == ""
    source.prepare(source.schemas())
    assert source.schemas()[0].evidence


SWAP_TABLES = [
    "ALTER TABLE t RENAME TO z",
    "ALTER TABLE w RENAME TO t",
    "ALTER TABLE z RENAME TO w",
]
SWAP_COLUMNS = [
    "ALTER TABLE t RENAME a TO z",
    "ALTER TABLE t RENAME b TO a",
    "ALTER TABLE t RENAME z TO b",
]
ROW = "INSERT INTO t VALUES (3, 3, 30)"
# what is done, used and undone: the catalog is as it was, only the stream can tell
THERE_AND_BACK: dict[str, tuple[set[tuple[str, str | None]], list[str]]] = {
    "renamed": (
        TABLE,
        [
            "ALTER TABLE t RENAME TO t2",
            "INSERT INTO t2 VALUES (2, 2, 20)",
            "ALTER TABLE t2 RENAME TO t",
            ROW,
        ],
    ),
    "renamed, nothing written afterwards": (
        TABLE,
        [
            "ALTER TABLE t RENAME TO t2",
            "INSERT INTO t2 VALUES (2, 2, 20)",
            "ALTER TABLE t2 RENAME TO t",
        ],
    ),
    "renamed in one transaction": (
        TABLE,
        [
            "BEGIN; ALTER TABLE t RENAME TO t2; INSERT INTO t2 VALUES (2, 2, 20);"
            " ALTER TABLE t2 RENAME TO t; COMMIT",
            ROW,
        ],
    ),
    "emptied under another name": (
        TABLE,
        ["ALTER TABLE t RENAME TO t2", "TRUNCATE t2", "ALTER TABLE t2 RENAME TO t", ROW],
    ),
    "moved to another schema": (
        TABLE,
        [
            "CREATE SCHEMA other",
            "ALTER TABLE t SET SCHEMA other",
            "INSERT INTO other.t VALUES (2, 2, 20)",
            "ALTER TABLE other.t SET SCHEMA public",
            ROW,
        ],
    ),
    "two watched tables swapped": (
        {("t", None), ("w", None)},
        [*SWAP_TABLES, "INSERT INTO t VALUES (101, 101, 101)", *SWAP_TABLES],
    ),
    "two watched tables swapped, both written": (
        {("t", None), ("w", None)},
        [
            *SWAP_TABLES,
            "INSERT INTO w VALUES (2, 2, 20)",
            "INSERT INTO t VALUES (101, 101, 101)",
            *SWAP_TABLES,
            ROW,
        ],
    ),
    "swapped with a table that is not watched": (
        TABLE,
        [
            "CREATE TABLE new (LIKE t)",
            "ALTER TABLE new REPLICA IDENTITY FULL",
            f"ALTER PUBLICATION {PUBLICATION} ADD TABLE ONLY new",
            "ALTER TABLE t RENAME TO old; ALTER TABLE new RENAME TO t",
            "INSERT INTO t VALUES (2, 2, 20)",
            "ALTER TABLE t RENAME TO new; ALTER TABLE old RENAME TO t",
            ROW,
        ],
    ),
    "two columns swapped": (
        {("t", "a"), ("t", "b")},
        [*SWAP_COLUMNS, "INSERT INTO t (id, a, b) VALUES (2, 20, 2)", *SWAP_COLUMNS, ROW],
    ),
    "column renamed": (
        {("t", "a")},
        [
            "ALTER TABLE t RENAME a TO z",
            "INSERT INTO t VALUES (2, 2, 20)",
            "ALTER TABLE t RENAME z TO a",
            ROW,
        ],
    ),
    "another column of the name": (
        {("t", "b")},
        [
            "ALTER TABLE t RENAME b TO z",
            "ALTER TABLE t ADD COLUMN b integer",
            "INSERT INTO t VALUES (2, 2, 20, 21)",
            "ALTER TABLE t DROP COLUMN b",
            "ALTER TABLE t RENAME z TO b",
            ROW,
        ],
    ),
}


@pytest.mark.parametrize("seen", ["nothing yet", "a row"])
@pytest.mark.parametrize("monitored", ["afterwards", "meanwhile"])
@pytest.mark.parametrize("done", THERE_AND_BACK)
def test_what_was_written_under_another_identity_is_lost(
    postgres: PostgresWorld, done: str, monitored: str, seen: str
) -> None:
    for name in "tw":
        postgres.table(name, "id integer PRIMARY KEY, a integer, b integer")
    watch = postgres.watch("t", "w")
    writer = postgres.writer()
    writer.execute("INSERT INTO w VALUES (100, 100, 100)")
    if seen == "a row":
        writer.execute("INSERT INTO t VALUES (1, 1, 10)")
    watch.drain()
    at, seq = watch.chunks[-1].position, len(watch.transactions) + 1
    if monitored == "afterwards":
        watch.monitor.close()
    lost, statements = THERE_AND_BACK[done]
    for statement in statements:
        writer.execute(statement)
    if monitored == "afterwards":
        postgres.reopen(watch, at, seq)
    watch.drain()
    assert set(watch.lost) == lost
    first = watch.source.snapshot()
    writer.execute("INSERT INTO t VALUES (7, 7, 70)")
    watch.chunks.clear()
    watch.drain()
    assert not watch.lost, "what is as it was is no further loss"
    assert (7, 7, 70) in watch.replay(watch.relations[0])
    first.close()


def test_a_table_made_anew_is_captured_after_the_look_that_tells_it(
    postgres: PostgresWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = watched(postgres)
    writer = postgres.writer()
    for statement in LOSSES["dropped and made anew"][1]:
        writer.execute(statement)
    at, seq = watch.chunks[-1].position, len(watch.transactions) + 1
    postgres.reopen(watch, at, seq)
    told(watch, lambda x: x.relation.path[-1] == "t")
    watch.chunks.clear()
    writer.execute("INSERT INTO t VALUES (5, 'e', 'bad', NULL, 5)")
    watch.drain()
    assert not watch.lost
    assert watch.replay(watch.relations[0]) == Counter([(5, "e", "bad", None, 5)])


def test_an_unused_column_dropped_while_changes_wait_takes_no_other_with_it(
    postgres: PostgresWorld,
) -> None:
    postgres.table("t", "id integer PRIMARY KEY, a integer, b integer")
    watch = postgres.watch("t")
    writer = postgres.writer()
    watch.monitor.close()
    writer.execute("INSERT INTO t VALUES (1, 1, 10)")
    writer.execute("ALTER TABLE t DROP COLUMN a")
    writer.execute("ALTER TABLE t ADD COLUMN c integer")
    writer.execute("INSERT INTO t VALUES (2, 20, 200)")
    postgres.reopen(watch, watch.start, 1)
    watch.drain()
    assert set(watch.lost) == {("t", "a")}


def test_a_relation_that_was_never_looked_at_is_known_by_what_the_stream_first_says(
    postgres: PostgresWorld,
) -> None:
    watch = watched(postgres)
    watch.relations = [replace(r, evidence="") for r in watch.relations]
    postgres.reopen(watch, watch.start, 1)
    watch.drain()
    assert not watch.lost
    writer = postgres.writer()
    for statement in ["ALTER TABLE u RENAME TO u2", "DELETE FROM u2", "ALTER TABLE u2 RENAME TO u"]:
        writer.execute(statement)
    watch.drain()
    assert set(watch.lost) == {("u", None)}
