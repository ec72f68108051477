"""SQLite's capture proves that it has everything: the same file, the same tables, every change."""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from steadyview.errors import ChangesLost, ColumnLost, SourceDiverged, SourceRefused
from steadyview.sources.sqlite import evidence, log
from steadyview.sources.sqlite.proof import Proof
from steadyview.sources.sqlite.schema import read_table
from tests.sources.keeper import Keeper, plus
from tests.sources.test_sqlite import SHAPES
from tests.sources.world import SqliteWorld, Writer

ROWS = "INSERT INTO t (v) VALUES ('{0}1'), ('{0}2'), ('{0}3')"


@pytest.fixture
def keeper(sqlite: SqliteWorld) -> Iterator[Keeper]:
    sqlite.table("t", "id INTEGER PRIMARY KEY, v TEXT, w TEXT")
    made = Keeper(sqlite, "t")
    made.life()
    yield made
    made.stop()


def write(keeper: Keeper, *statements: str) -> None:
    """One transaction of a user's connection, which is closed again."""
    connection = sqlite3.connect(keeper.world.path, isolation_level=None)
    connection.execute("BEGIN")
    for statement in statements:
        connection.execute(statement)
    connection.execute("COMMIT")
    connection.close()


def backup(keeper: Keeper) -> Path:
    """A backup of the file, by SQLite's own means."""
    made = keeper.world.folder / "backup.db"
    with sqlite3.connect(keeper.world.path) as here, sqlite3.connect(made) as there:
        here.backup(there)
    here.close()
    there.close()
    return made


def by_backup(file: Path, copy: Path) -> None:
    with sqlite3.connect(copy) as there, sqlite3.connect(file) as here:
        there.backup(here)
    here.close()
    there.close()


def by_copying(file: Path, copy: Path) -> None:
    for held in ("-wal", "-shm"):
        file.with_name(file.name + held).unlink(missing_ok=True)
    shutil.copy(copy, file)


def by_renaming(file: Path, copy: Path) -> None:
    for held in ("-wal", "-shm"):
        file.with_name(file.name + held).unlink(missing_ok=True)
    copy.rename(file)


WAYS = [by_backup, by_copying, by_renaming]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("written", [0, 1, 2, 5])
def test_a_restored_file_is_told_however_far_it_was_written_since(
    keeper: Keeper, way: Callable[[Path, Path], None], written: int
) -> None:
    write(keeper, ROWS.format("a"))
    keeper.life()
    copy = backup(keeper)
    write(keeper, ROWS.format("b"), ROWS.format("c"))
    keeper.life()
    way(keeper.world.path, copy)
    for n in range(written):
        write(keeper, ROWS.format(f"new {n} "))
    for _ in range(2):
        with pytest.raises(SourceDiverged, match="another past") as told:
            keeper.start()
        assert told.value.hint == "run: steadyview source resnapshot src"
        with pytest.raises(SourceDiverged):
            keeper.examine()


@pytest.mark.parametrize("written", [0, 1, 2, 5])
def test_a_file_restored_under_the_monitor_is_told(keeper: Keeper, written: int) -> None:
    write(keeper, ROWS.format("a"))
    keeper.start()
    keeper.take()
    copy = backup(keeper)
    write(keeper, ROWS.format("b"), ROWS.format("c"))
    keeper.take()
    by_backup(keeper.world.path, copy)
    for n in range(written):
        write(keeper, ROWS.format(f"new {n} "))
    with pytest.raises(SourceDiverged):
        keeper.examine()
    with pytest.raises(SourceDiverged):
        keeper.take()
    assert keeper.told == []


def test_a_file_copied_over_under_the_monitor_is_told_with_the_next_change(keeper: Keeper) -> None:
    write(keeper, ROWS.format("a"))
    keeper.start()
    keeper.take()
    copy = backup(keeper)
    write(keeper, ROWS.format("b"))
    keeper.take()
    keeper.world.writer().execute("PRAGMA wal_checkpoint(TRUNCATE)")
    keeper.world.close()
    shutil.copy(copy, keeper.world.path)
    write(keeper, ROWS.format("new"), ROWS.format("more"))
    with pytest.raises(SourceDiverged):
        keeper.take()


def test_nothing_is_pruned_from_a_file_that_was_restored(keeper: Keeper) -> None:
    write(keeper, ROWS.format("a"))
    keeper.start()
    keeper.take()
    copy = backup(keeper)
    write(keeper, ROWS.format("b"))
    keeper.take()
    by_backup(keeper.world.path, copy)
    write(keeper, ROWS.format("new"), ROWS.format("more"))
    rows = "SELECT count(*) FROM _steadyview_log"
    before = keeper.world.writer().execute(rows)
    keeper.acknowledge()
    assert keeper.world.writer().execute(rows) == before


@pytest.mark.parametrize("way", WAYS)
def test_a_copy_that_has_everything_goes_on(
    keeper: Keeper, way: Callable[[Path, Path], None]
) -> None:
    write(keeper, ROWS.format("a"))
    keeper.life()
    write(keeper, ROWS.format("b"))
    way(keeper.world.path, backup(keeper))
    write(keeper, ROWS.format("c"))
    keeper.life()
    assert keeper.examine() == {}
    assert keeper.told == []
    assert plus(keeper.changes("t", 0), Counter()) == keeper.state("t")
    assert sum(keeper.state("t").values()) == 9


def test_a_file_replaced_together_with_its_write_ahead_log_goes_on(keeper: Keeper) -> None:
    """As a copy of a crashed machine's disk: the newest rows are in the -wal file only."""
    write(keeper, ROWS.format("a"))
    keeper.life()
    held = keeper.world.writer()
    held.execute("PRAGMA wal_autocheckpoint = 0")
    held.execute(ROWS.format("b"))
    path, copy = keeper.world.path, keeper.world.folder / "copy.db"
    shutil.copy(path, copy)
    shutil.copy(f"{path}-wal", f"{copy}-wal")
    keeper.start()
    keeper.stop()
    keeper.world.close()
    for ending in ("-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)
    for ending in ("-wal", ""):
        Path(f"{copy}{ending}").rename(f"{path}{ending}")
    keeper.life()
    assert keeper.changes("t", 0) == keeper.state("t")
    assert sum(keeper.state("t").values()) == 6


def test_a_file_restored_from_before_its_log_is_told(sqlite: SqliteWorld) -> None:
    sqlite.table("t", "id INTEGER PRIMARY KEY, v TEXT")
    keeper = Keeper(sqlite, "t")
    copy = backup(keeper)
    keeper.start()
    write(keeper, ROWS.format("a"))
    keeper.take()
    by_backup(sqlite.path, copy)
    for look in (keeper.examine, keeper.take):
        with pytest.raises(SourceDiverged, match="no log"):
            look()
    keeper.stop()
    with pytest.raises(ChangesLost, match="set up anew"):
        keeper.start()
    with pytest.raises(SourceDiverged, match="set up anew"):
        keeper.examine()


def test_a_position_at_the_empty_log_is_proved_by_the_log(sqlite: SqliteWorld) -> None:
    sqlite.table("t", "id INTEGER PRIMARY KEY, v TEXT")
    keeper = Keeper(sqlite, "t")
    keeper.life()
    assert Proof.parse(keeper.proof) is not None
    copy = backup(keeper)
    write(keeper, ROWS.format("a"))
    by_backup(sqlite.path, copy)
    write(keeper, ROWS.format("b"))
    keeper.life()
    assert keeper.changes("t", 0) == keeper.state("t")
    keeper.source.remove()
    with pytest.raises(ChangesLost):
        keeper.start()


def test_deleted_log_rows_are_told(keeper: Keeper) -> None:
    write(keeper, ROWS.format("a"))
    keeper.life()
    write(keeper, ROWS.format("b"))
    last = "SELECT max(seq) FROM _steadyview_log"
    write(keeper, f"DELETE FROM _steadyview_log WHERE seq = ({last}) - 1")
    keeper.start()
    with pytest.raises(SourceDiverged, match="another past") as told:
        keeper.take()
    assert "deleted" in str(told.value.detail)


def test_a_row_that_was_acknowledged_stays_until_the_next_one_is(keeper: Keeper) -> None:
    write(keeper, ROWS.format("a"))
    keeper.start()
    keeper.take()
    write(keeper, ROWS.format("b"))
    keeper.acknowledge()
    seqs = "SELECT seq FROM _steadyview_log ORDER BY seq"
    assert keeper.world.writer().execute(seqs) == [(n,) for n in range(3, 7)]
    keeper.take()
    keeper.acknowledge()
    assert keeper.world.writer().execute(seqs) == [(6,)]


def test_where_a_snapshot_was_taken_of_another_past_no_transaction_is_cut(keeper: Keeper) -> None:
    write(keeper, ROWS.format("a"))
    copy = backup(keeper)
    write(keeper, "INSERT INTO t (v) VALUES ('b')")
    keeper.source.snapshot().close()
    by_backup(keeper.world.path, copy)
    keeper.start()
    write(keeper, ROWS.format("c"))
    keeper.take()
    assert [t.rows for c in keeper.chunks for t in c.transactions][-1:] == [6]


def uncounted(trigger: str) -> str:
    """The trigger's text as it was before rows were counted."""
    counting = r"UPDATE _steadyview_written SET seq = seq \+ (1|changes\(\) \+ \d); "
    return re.sub(counting, "", trigger)


def without_new_guards(writer: Writer) -> None:
    writer.execute("DROP VIEW _steadyview_1_guard_view")
    writer.execute("DROP INDEX _steadyview_1_guard_index")
    writer.execute("DROP TABLE _steadyview_written")


def before_counting(keeper: Keeper) -> None:
    """Make the log what it was before rows were counted, guarded by a trigger alone."""
    writer = keeper.world.writer()
    writer.execute("PRAGMA writable_schema = ON")
    triggers = writer.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
    writer.execute("BEGIN")
    for name, text in triggers:
        edit = "UPDATE sqlite_master SET sql = ? WHERE name = ?"
        writer.execute(edit, uncounted(text), name)
    writer.execute("PRAGMA schema_version = 4711")
    writer.execute("COMMIT")
    writer.close()
    writer = keeper.world.writer()
    without_new_guards(writer)
    # the fingerprint of those texts, as that version noted it
    ((logged,),) = [log.relations(writer.connection).values()]
    table = read_table(writer.connection, "src", "t")
    known_by = evidence.fingerprint_of(writer.connection, logged, table)
    writer.execute("UPDATE _steadyview_relations SET triggers = ?", known_by)


def older(keeper: Keeper) -> None:
    """Make the log what older versions wrote: no numbers drawn, no guard, no owner."""
    writer = keeper.world.writer()
    triggers = writer.execute(
        "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND name GLOB '_steadyview*'"
    )
    writer.execute("BEGIN")
    for name, text in triggers:
        writer.execute(f"DROP TRIGGER {name}")
        if "guard" not in name:
            writer.execute(uncounted(text.replace("nonce, ", "").replace("random(), ", "")))
    without_new_guards(writer)
    writer.execute("ALTER TABLE _steadyview_log DROP COLUMN nonce")
    for column in ("defaults", "triggers", "made"):
        writer.execute(f"ALTER TABLE _steadyview_relations DROP COLUMN {column}")
    writer.execute("ALTER TABLE _steadyview_meta DROP COLUMN warehouse")
    writer.execute("COMMIT")


def test_a_log_of_an_older_version_is_taken_over_by_its_owner_and_goes_on(keeper: Keeper) -> None:
    write(keeper, ROWS.format("a"))
    keeper.life()
    older(keeper)
    for name, relation in keeper.recorded.items():
        keeper.recorded[name] = relation.__class__(**{**relation.__dict__, "evidence": ""})
    write(keeper, ROWS.format("b"))
    keeper.proof = ""
    with pytest.raises(SourceRefused, match="a warehouse that is not known"):
        keeper.start()
    keeper.proof = '{"format": 1}'
    keeper.life()
    assert keeper.done[0] == "brought the log up to date"
    write(keeper, ROWS.format("c"))
    keeper.life()
    assert keeper.done == []
    assert (keeper.told, keeper.examine()) == ([], {})
    assert keeper.changes("t", 0) == keeper.state("t")
    nonces = "SELECT nonce IS NULL FROM _steadyview_log ORDER BY seq DESC LIMIT 1"
    assert keeper.world.writer().execute(nonces) == [(0,)]


def test_what_went_unlogged_under_an_older_version_is_told(keeper: Keeper) -> None:
    write(keeper, ROWS.format("a"))
    keeper.life()
    older(keeper)
    write(keeper, "DROP TRIGGER _steadyview_1_after_insert")
    keeper.proof = '{"format": 1}'
    keeper.life()
    assert keeper.lost == {("t", None)}


def test_the_log_of_an_older_version_cannot_be_read_until_run_was_there(keeper: Keeper) -> None:
    older(keeper)
    with pytest.raises(SourceRefused, match="is not set up"):
        keeper.source.snapshot()
    assert [r.evidence for r in keeper.source.schemas()] == [""]


def restored_triggers(keeper: Keeper) -> list[str]:
    """Drop and create one trigger, with a change of the table in between."""
    ((text,),) = keeper.world.writer().execute(
        "SELECT sql FROM sqlite_master WHERE name = '_steadyview_1_after_insert'"
    )
    return ["DROP TRIGGER _steadyview_1_after_insert", ROWS.format("unseen"), text]


def edited(what: str, old: str, new: str) -> list[str]:
    """An edit of the schema's text in place."""
    return [
        "PRAGMA writable_schema = ON",
        f"UPDATE sqlite_master SET sql = replace(sql, '{old}', '{new}') WHERE name = '{what}'",
    ]


COLUMNS = "id INTEGER PRIMARY KEY, v TEXT, w TEXT"
BROKEN = {
    "dropped": ["DROP TRIGGER _steadyview_1_after_delete", "DELETE FROM t WHERE id = 1"],
    "all dropped": [
        f"DROP TRIGGER _steadyview_1_{when}_{what}"
        for when, what in (("before", "insert"), ("after", "insert"), ("after", "delete"))
    ],
    "made anew": ["DROP TABLE t", f"CREATE TABLE t ({COLUMNS})", ROWS.format("new")],
    "copied and renamed": [
        f"CREATE TABLE u ({COLUMNS})",
        "INSERT INTO u SELECT id, w, v FROM t",
        "DROP TABLE t",
        "ALTER TABLE u RENAME TO t",
    ],
    "swapped by renaming": [
        f"CREATE TABLE u ({COLUMNS})",
        "ALTER TABLE t RENAME TO x",
        "ALTER TABLE u RENAME TO t",
        "INSERT INTO t VALUES (99, 'other', NULL)",
    ],
    "unique key": [
        "CREATE UNIQUE INDEX by_v ON t (v)",
        "INSERT OR REPLACE INTO t VALUES (7, 'a1', 0)",
    ],
    "notes": ["DROP TABLE _steadyview_1_displaced"],
    "trigger edited": edited("_steadyview_1_after_insert", "count", "count "),
    "columns edited": edited("t", "v TEXT, w TEXT", "w TEXT, v TEXT"),
}


def all_triggers_restored(keeper: Keeper) -> list[str]:
    """What every "no triggers during this load" script does: all of them, in their order."""
    triggers = keeper.world.writer().execute(
        "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY rowid"
    )
    return [
        *(f"DROP TRIGGER {name}" for name, _ in triggers),
        "DELETE FROM t WHERE id = 1",
        "INSERT INTO t (v) VALUES ('unseen')",
        *(text for _, text in triggers),
    ]


@pytest.mark.parametrize("before", ["nothing", "vacuum", "sorted dump"])
@pytest.mark.parametrize("after", ["nothing", "vacuum"])
def test_all_triggers_dropped_and_made_again_in_their_order_are_told(
    keeper: Keeper, before: str, after: str
) -> None:
    write(keeper, ROWS.format("a"))
    keeper.life()
    if before == "vacuum":
        keeper.world.writer().execute("VACUUM")
    if before == "sorted dump":
        replaced(keeper, sorted_dump(keeper))
    write(keeper, *all_triggers_restored(keeper))
    if after == "vacuum":
        keeper.world.writer().execute("VACUUM")
    write(keeper, ROWS.format("b"))
    assert set(keeper.examine()) == {("t", None)}
    keeper.life()
    assert keeper.lost == {("t", None)}


@pytest.mark.parametrize("how", ["all restored", "restored in one transaction", *BROKEN])
@pytest.mark.parametrize("running", [False, True])
def test_a_relation_of_which_changes_may_be_missing_is_lost_as_a_whole_and_can_be_used_again(
    keeper: Keeper, how: str, running: bool
) -> None:
    write(keeper, ROWS.format("a"))
    keeper.life()
    restored = all_triggers_restored if how == "all restored" else restored_triggers
    statements = BROKEN.get(how) or restored(keeper)
    if running:
        keeper.start()
        keeper.take()
        write(keeper, *statements)
        assert set(keeper.examine()) == {("t", None)}
        with pytest.raises(ColumnLost) as refused:
            keeper.state("t")
        assert refused.value.column is None
        keeper.take()
        # an edit in place does not tell other connections
        assert keeper.lost == (set() if how.endswith("edited") else {("t", None)})
        keeper.stop()
        keeper.told = []
    else:
        write(keeper, *statements)
    keeper.start()
    assert set(keeper.examine()) == {("t", None)}
    assert keeper.examine() == {}
    keeper.take()
    assert keeper.lost == {("t", None)}
    rebuilt, since = keeper.state("t"), len(keeper.chunks)
    write(keeper, "UPDATE t SET v = v || '!', w = 'x'", "INSERT INTO t (v) VALUES ('last')")
    keeper.take()
    assert plus(rebuilt, keeper.changes("t", since)) == keeper.state("t")
    assert {x.column for x in keeper.told} == {None}
    keeper.stop()
    told = len(keeper.told)
    keeper.life()
    assert (len(keeper.told), keeper.examine()) == (told, {})


SWAPPED = {
    "swapped": (
        [
            "ALTER TABLE t RENAME COLUMN v TO x",
            "ALTER TABLE t RENAME COLUMN w TO v",
            "ALTER TABLE t RENAME COLUMN x TO w",
        ],
        {"v", "w"},
    ),
    "renamed and added again": (
        ["ALTER TABLE t RENAME COLUMN v TO x", "ALTER TABLE t ADD COLUMN v TEXT"],
        {"v"},
    ),
    "moved on": (
        ["ALTER TABLE t RENAME COLUMN v TO x", "ALTER TABLE t RENAME COLUMN w TO v"],
        {"v", "w"},
    ),
    "renamed": (["ALTER TABLE t RENAME COLUMN v TO x"], {"v"}),
    "rowid renamed": (["ALTER TABLE t RENAME COLUMN id TO x"], {"id"}),
}


@pytest.mark.parametrize("how", SWAPPED)
@pytest.mark.parametrize("running", [False, True])
def test_columns_that_are_others_under_the_same_name_are_lost_and_no_more(
    keeper: Keeper, how: str, running: bool
) -> None:
    write(keeper, "INSERT INTO t (v, w) VALUES ('old v', 'old w')")
    keeper.life()
    statements, lost = SWAPPED[how]
    if running:
        keeper.start()
        keeper.take()
        write(keeper, *statements, "INSERT INTO t (rowid) VALUES (5)")
        keeper.take()
        assert keeper.lost == {("t", c) for c in lost}
        assert set(keeper.examine()) == {("t", c) for c in lost}
        keeper.stop()
        keeper.told = []
        keeper.start()
    else:
        write(keeper, *statements)
        keeper.start()
        assert set(keeper.examine()) == {("t", c) for c in lost}
    assert keeper.examine() == {}
    keeper.take()
    assert keeper.lost == {("t", c) for c in lost}
    told, since = len(keeper.told), len(keeper.chunks)
    here = {c.name for c in keeper.source.schemas()[0].columns}
    if here >= {"id", "v", "w"}:
        before = rows(keeper)
        write(keeper, "INSERT INTO t (v, w) VALUES ('new v', 'new w')", "UPDATE t SET w = w || '+'")
        keeper.take()
        seen = [c.rows[keeper.relations[0].name] for c in keeper.chunks[since:]]
        bag: Counter[tuple[object, ...]] = Counter(before)
        for table in seen:
            for row in table.to_pylist():
                bag[row["c0"], row["c1"], row["c2"]] += row["_count"]
        assert Counter({r: n for r, n in bag.items() if n}) == Counter(rows(keeper))
    assert len(keeper.told) == told


def rows(keeper: Keeper) -> list[tuple[object, ...]]:
    return keeper.world.writer().execute("SELECT id, v, w FROM t")


def test_what_is_found_lost_is_lost_in_every_transaction_of_the_same_read(keeper: Keeper) -> None:
    """A state between the first of them and the change would otherwise not hear of it."""
    keeper.start()
    write(keeper, ROWS.format("a"))
    first = keeper.source.snapshot()
    write(keeper, ROWS.format("b"))
    second = keeper.source.snapshot()
    write(keeper, *SWAPPED["swapped"][0])
    keeper.take()
    assert [t.rows for c in keeper.chunks for t in c.transactions] == [3, 3]
    assert sorted((x.column, x.seq) for x in keeper.told) == [
        ("v", 1),
        ("v", 2),
        ("w", 1),
        ("w", 2),
    ]
    first.close()
    second.close()


@pytest.mark.parametrize("shape", SHAPES)
def test_renaming_any_column_loses_that_column_and_renaming_it_back_nothing(
    sqlite: SqliteWorld, shape: str
) -> None:
    options = "WITHOUT ROWID" if shape == "without rowid" else ""
    sqlite.writer().execute(f"CREATE TABLE t ({SHAPES[shape]}) {options}")
    keeper = Keeper(sqlite, "t")
    keeper.life()
    for column in "abcd":
        write(keeper, f'ALTER TABLE t RENAME COLUMN {column} TO "new ""{column}"')
        assert set(keeper.examine()) == {("t", column)}
        write(keeper, f'ALTER TABLE t RENAME COLUMN "new ""{column}" TO {column}')
        keeper.examine()
    assert keeper.examine() == {}
    keeper.life()
    assert keeper.told == []


HARMLESS = {
    "vacuum": ["VACUUM"],
    "added column": ["ALTER TABLE t ADD COLUMN x TEXT DEFAULT 'x'"],
    "added and dropped": ["ALTER TABLE t ADD COLUMN x", "ALTER TABLE t DROP COLUMN x"],
    "index": ["CREATE INDEX by_v ON t (v)", "DROP INDEX by_v", "REINDEX", "ANALYZE"],
    "other table": ["CREATE TABLE u (a)", "DROP TABLE u"],
    "own trigger": ["CREATE TRIGGER own AFTER INSERT ON t BEGIN SELECT 1; END", "VACUUM"],
    "renamed and back": [
        "ALTER TABLE t RENAME TO u",
        "INSERT INTO u (v) VALUES ('seen')",
        "ALTER TABLE u RENAME TO t",
    ],
    "column renamed and back": [
        "ALTER TABLE t RENAME COLUMN v TO \"it's\"",
        "INSERT INTO t (\"it's\") VALUES ('seen')",
        "ALTER TABLE t RENAME COLUMN \"it's\" TO v",
    ],
}


@pytest.mark.parametrize("how", HARMLESS)
def test_what_harms_nothing_is_no_loss(keeper: Keeper, how: str) -> None:
    write(keeper, ROWS.format("a"))
    keeper.life()
    writer = keeper.world.writer()
    for statement in HARMLESS[how]:
        writer.execute(statement)
    writer.execute(ROWS.format("b"))
    assert keeper.examine() == {}
    keeper.life()
    assert (keeper.told, keeper.examine()) == ([], {})
    keeper.start()
    writer.execute("VACUUM")
    writer.execute(ROWS.format("c"))
    keeper.take()
    assert (keeper.told, keeper.examine()) == ([], {})
    seen = writer.execute("SELECT id, v, w FROM t")
    images: Counter[tuple[object, ...]] = Counter()
    for chunk in keeper.chunks:
        for row in chunk.rows[keeper.relations[0].name].to_pylist():
            images[row["c0"], row["c1"], row["c2"]] += row["_count"]
    assert Counter({r: n for r, n in images.items() if n}) == Counter(seen)


def dump(keeper: Keeper) -> str:
    connection = sqlite3.connect(keeper.world.path)
    text = "\n".join(connection.iterdump())
    connection.close()
    return text


def shell_dump(keeper: Keeper) -> str:
    if shutil.which("sqlite3") is None:
        pytest.skip("there is no sqlite3 shell")
    made = subprocess.run(
        ["sqlite3", str(keeper.world.path), ".dump"], capture_output=True, text=True, check=True
    )
    return made.stdout


def sorted_dump(keeper: Keeper) -> str:
    """As newer shells write it: views before triggers before indexes."""
    connection = sqlite3.connect(keeper.world.path)
    rest = connection.execute(
        "SELECT sql FROM sqlite_master WHERE type IN ('view', 'trigger', 'index')"
        " AND sql NOT NULL ORDER BY type DESC, rowid"
    ).fetchall()
    text = "\n".join(connection.iterdump()).removesuffix("COMMIT;")
    connection.close()
    for (one,) in rest:
        text = text.replace(f"{one};", "")
    return text + "\n".join(f"{one};" for (one,) in rest) + "\nCOMMIT;"


def replaced(keeper: Keeper, text: str) -> None:
    """Put a file made from the text in the place of the source's."""
    copy = keeper.world.folder / "dumped.db"
    made = sqlite3.connect(copy)
    made.executescript(text)
    made.execute("PRAGMA journal_mode = WAL")
    made.close()
    keeper.world.close()
    by_renaming(keeper.world.path, copy)


@pytest.mark.parametrize("dumped", [dump, shell_dump, sorted_dump])
@pytest.mark.parametrize("vacuumed", ["not", "before", "in the next life"])
def test_a_file_restored_from_its_text_goes_on(
    keeper: Keeper, dumped: Callable[[Keeper], str], vacuumed: str
) -> None:
    write(keeper, ROWS.format("a"))
    keeper.life()
    if vacuumed == "before":
        keeper.world.writer().execute("VACUUM")
    replaced(keeper, dumped(keeper))
    write(keeper, ROWS.format("b"))
    keeper.life()
    if vacuumed == "in the next life":
        keeper.world.writer().execute("VACUUM")
        write(keeper, ROWS.format("c"))
        keeper.life()
    assert (keeper.told, keeper.examine()) == ([], {})
    assert keeper.changes("t", 0) == keeper.state("t")


def test_a_log_from_before_rows_were_counted_is_taken_over_without_a_loss(keeper: Keeper) -> None:
    write(keeper, ROWS.format("a"))
    keeper.life()
    before_counting(keeper)
    write(keeper, ROWS.format("b"))
    assert keeper.examine() == {}
    keeper.life()
    assert len(keeper.done) == 1
    write(keeper, ROWS.format("c"))
    keeper.life()
    assert keeper.done == []
    assert (keeper.told, keeper.examine()) == ([], {})
    assert keeper.changes("t", 0) == keeper.state("t")


@pytest.mark.parametrize("captured", [0, 1, 2])
@pytest.mark.parametrize("written", [0, 1, 3, 5])
@pytest.mark.parametrize("running", [False, True])
def test_rows_deleted_from_the_end_of_the_log_are_missed_however_far_it_was_written_since(
    keeper: Keeper, captured: int, written: int, running: bool
) -> None:
    for n in range(captured):
        write(keeper, ROWS.format(f"{n} "))
        keeper.life()
    if running:
        keeper.start()
        keeper.take()
    ((last,),) = keeper.world.writer().execute("SELECT coalesce(max(seq), 0) FROM _steadyview_log")
    # in one transaction, so that a running monitor cannot come between
    write(keeper, ROWS.format("unseen"), f"DELETE FROM _steadyview_log WHERE seq > {last}")
    for n in range(written):
        write(keeper, ROWS.format(f"later {n} "))
    with pytest.raises(SourceDiverged, match="were written"):
        keeper.examine()
    with pytest.raises(SourceDiverged, match="were written"):
        keeper.take() if running else keeper.start()


def test_what_a_failed_statement_kept_and_what_was_undone_is_counted_right(keeper: Keeper) -> None:
    writer = keeper.world.writer()
    write(keeper, "CREATE UNIQUE INDEX by_v ON t (v)")
    keeper.life()
    keeper.told.clear()
    keeper.examine()
    writer.execute(ROWS.format("a"))
    for clause in ("FAIL", "ABORT", "ROLLBACK", "IGNORE", "REPLACE"):
        for statement in (
            f"INSERT OR {clause} INTO t (v) VALUES ('{clause}'), ('a2'), ('{clause} 2')",
            f"UPDATE OR {clause} t SET v = 'a3' WHERE v <> 'a1'",
        ):
            with suppress(sqlite3.IntegrityError):
                writer.execute(statement)
    writer.execute("BEGIN")
    writer.execute(ROWS.format("b"))
    writer.execute("SAVEPOINT s")
    writer.execute(ROWS.format("c"))
    writer.execute("ROLLBACK TO s")
    writer.execute("COMMIT")
    keeper.life()
    assert (keeper.told, keeper.examine()) == ([], {})
    counted = "SELECT seq, (SELECT max(seq) FROM _steadyview_log) FROM _steadyview_written"
    ((count, last),) = writer.execute(counted)
    assert count == last > 3


def test_two_tables_that_changed_names_are_both_lost(sqlite: SqliteWorld) -> None:
    for table in ("t", "u"):
        sqlite.table(table, "id INTEGER PRIMARY KEY, v TEXT")
    keeper = Keeper(sqlite, "t", "u")
    keeper.life()
    write(
        keeper,
        "ALTER TABLE t RENAME TO x",
        "ALTER TABLE u RENAME TO t",
        "ALTER TABLE x RENAME TO u",
        ROWS.format("a"),
    )
    keeper.life()
    assert keeper.lost == set(keeper.examine()) == {("t", None), ("u", None)}


def test_a_default_of_a_key_that_changed_loses_the_relation(sqlite: SqliteWorld) -> None:
    """REPLACE turns NULL into it, and may then remove a row that the triggers do not look for."""
    sqlite.table("t", "id INTEGER PRIMARY KEY, v TEXT NOT NULL DEFAULT 'x' UNIQUE")
    keeper = Keeper(sqlite, "t")
    keeper.life()
    write(keeper, *edited("t", "''x''", "''y''"))
    assert set(keeper.examine()) == {("t", None)}


def test_a_unique_index_on_an_expression_loses_the_relation(keeper: Keeper) -> None:
    keeper.start()
    write(keeper, "CREATE UNIQUE INDEX low ON t (lower(v))", ROWS.format("a"))
    keeper.take()
    assert keeper.lost == set(keeper.examine()) == {("t", None)}
    write(keeper, "DROP INDEX low")
    keeper.stop()
    keeper.start()
    keeper.take()
    assert keeper.examine() == {}


def test_a_table_restored_to_before_it_was_mended_is_lost(keeper: Keeper) -> None:
    """The stream is the same, but not what the relation was mended for."""
    copy = backup(keeper)
    write(keeper, *restored_triggers(keeper))
    keeper.prepare()
    keeper.examine()
    by_backup(keeper.world.path, copy)
    assert set(keeper.examine()) == {("t", None)}


def test_a_table_that_is_not_logged_is_lost(keeper: Keeper) -> None:
    write(keeper, "DELETE FROM _steadyview_relations")
    keeper.start()
    assert set(keeper.examine()) == {("t", None)}


def test_a_log_belongs_to_one_warehouse(keeper: Keeper) -> None:
    other = Keeper(keeper.world, "t", warehouse="0000000b")
    for proof in ("", '{"format": 1}', keeper.proof):
        other.proof = proof
        for call in (other.prepare, other.source.remove, other.source.start):
            with pytest.raises(SourceRefused, match='another warehouse \\("0000000a"\\)') as told:
                call()
            assert "steadyview source remove src" in str(told.value.hint)
        (obstacle,) = other.source.obstacles(other.relations)
        assert isinstance(obstacle, SourceRefused)
        assert other.source.holdings() == []
    with pytest.raises(SourceRefused):
        other.source.monitor(keeper.relations, keeper.source.start(), 1, "")
    write(keeper, ROWS.format("a"))
    keeper.life()
    assert keeper.changes("t", 0) == keeper.state("t")


def test_a_log_whose_warehouse_is_gone_can_be_given_up_by_hand(keeper: Keeper) -> None:
    other = Keeper(keeper.world, "t", warehouse="0000000b")
    with pytest.raises(SourceRefused) as told:
        other.start()
    assert "DROP TABLE _steadyview_meta" in str(told.value.hint)
    write(keeper, "DROP TABLE _steadyview_meta", ROWS.format("a"))
    other.life()
    assert other.examine() == {}
    with pytest.raises(SourceRefused, match="another warehouse"):
        keeper.start()
    with pytest.raises(SourceDiverged):
        keeper.examine()
    other.source.remove()
    assert keeper.world.traces() == []


def test_what_stands_in_the_file_is_listed_until_it_is_removed(keeper: Keeper) -> None:
    write(keeper, ROWS.format("a"))
    log, triggers, mode = keeper.source.holdings()
    assert str(keeper.world.path) in log
    assert "(3 rows)" in log
    assert (triggers, mode) == ('triggers on table "t"', 'its WAL mode (it was in mode "delete")')
    keeper.source.remove()
    assert keeper.source.holdings() == []


def test_a_locked_file_is_given_up_when_patience_ends(sqlite: SqliteWorld) -> None:
    sqlite.table("t", "id INTEGER PRIMARY KEY")
    source = Keeper(sqlite, "t").source
    relations = source.schemas()
    locker = sqlite.writer()
    locker.execute("BEGIN EXCLUSIVE")
    source.patience = 0.1
    with pytest.raises(Exception, match="does not answer"):
        source.schemas()
    (found,) = source.obstacles(relations)
    assert "does not answer" in str(found)
    locker.execute("COMMIT")
    assert source.obstacles(relations) == []
