"""What every Delta write of the warehouse promises."""

from __future__ import annotations

import json
import threading
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from deltalake.transaction import Transaction

from steadyview.delta import AddedFile, ParquetSink, Table
from steadyview.errors import ConfigError, LeaseLost, StorageDamaged, StorageUnavailable
from steadyview.fencing import fenced

SCHEMA = pa.schema([*((f"c{i}", pa.int64()) for i in range(40)), ("_seq", pa.int64())])


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table.create(tmp_path / "a table, größer 5% #,;:=+&|<>^'\"", SCHEMA, ranged=("_seq",))


def written(table: Table, app: str, version: int, seqs: list[int]) -> AddedFile:
    path = table.folder_for(app, version) / "part-0.parquet"
    sink = ParquetSink(table.path, path, SCHEMA, ("_seq",))
    sink.write(pa.table({"_seq": pa.array(seqs, pa.int64())}))
    return sink.close()


def seqs_in(table: Table) -> list[int]:
    """As any Delta reader sees it."""
    return sorted(DeltaTable(str(table.path)).to_pyarrow_table().column("_seq").to_pylist())


def test_creating_a_table_twice_keeps_its_rows(table: Table) -> None:
    table.commit("log", 1, [written(table, "log", 1, [1, 2])])
    again = Table.create(table.path, SCHEMA, ranged=("_seq",))
    assert seqs_in(again) == [1, 2]
    assert again.version() == 1


def test_a_repeated_or_older_write_changes_nothing(table: Table) -> None:
    file = written(table, "log", 2, [1, 2])
    version = table.commit("log", 2, [file])
    assert table.commit("log", 2, [file]) == version
    assert table.commit("log", 1, [file]) == version
    assert table.done("log", 1)
    assert table.done("log", 2)
    assert not table.done("log", 3)
    assert not table.done("another", 1)
    assert seqs_in(table) == [1, 2]


def test_a_writer_with_an_old_picture_is_refused(table: Table) -> None:
    stale = table._open()
    table.commit("log", 1, [written(table, "log", 1, [1])])
    file = written(table, "other", 1, [2])
    with pytest.raises(StorageUnavailable, match="was changed"):
        table._write(stale, Transaction("other", 1), [file], [], {})
    assert seqs_in(table) == [1]


def test_a_missing_file_is_refused_and_nothing_is_written(table: Table) -> None:
    with pytest.raises(StorageDamaged, match="is missing"):
        table.commit("log", 1, [AddedFile("data/log-1/gone.parquet", 10, 1)])
    assert table.version() == 0
    assert not table.done("log", 1)


def test_a_file_of_another_size_is_refused(table: Table) -> None:
    file = written(table, "log", 1, [1])
    with pytest.raises(StorageDamaged, match="expected 7"):
        table.commit("log", 1, [AddedFile(file.path, 7, 1)])


def test_a_file_name_that_delta_would_escape_is_refused(table: Table) -> None:
    with pytest.raises(ValueError, match="not safe"):
        table.commit("log", 1, [AddedFile("data/a b.parquet", 1, 1)])


def test_removing_a_file_that_is_not_listed_is_refused(table: Table) -> None:
    with pytest.raises(ValueError, match="does not list"):
        table.commit("log", 1, removes=["data/log-1/part-0.parquet"])


def test_listed_paths_exist_as_they_are_in_a_folder_of_any_name(table: Table) -> None:
    table.commit("log:sales", 1, [written(table, "log:sales", 1, [1, 2])])
    (entry,) = table.files()
    assert pq.read_table(entry.path).num_rows == entry.rows == 2
    assert Path(entry.path).stat().st_size == entry.size


def test_files_are_added_and_removed_in_one_step(table: Table) -> None:
    first = written(table, "log", 1, [1])
    table.commit("log", 1, [first])
    version = table.commit("compact", 1, [written(table, "compact", 1, [1, 5])], [first.path])
    assert version == 2
    assert seqs_in(table) == [1, 5]
    assert [f.relative for f in table.files(at_version=1)] == [first.path]


def test_ranges_survive_checkpoints_and_wide_tables(table: Table) -> None:
    for version in range(1, 25):
        table.commit("log", version, [written(table, "log", version, [version, version + 3])])
    last = json.loads((table.path / "_delta_log" / "_last_checkpoint").read_text())
    assert last["version"] >= 24 - 10
    assert sorted(f.ranges["_seq"] for f in table.files()) == [(v, v + 3) for v in range(1, 25)]
    assert len([f for f in table.files() if f.may_hold("_seq", 10, 10)]) == 4
    assert len([f for f in table.files() if f.holds_only("_seq", 10, 14)]) == 2
    assert not any(f.holds_only("_seq", 10, 12) for f in table.files())
    assert not any(f.holds_only("_id", 0, 100) for f in table.files())


def test_a_checkpoint_keeps_which_writes_are_done(table: Table) -> None:
    table.commit("once", 7, [written(table, "once", 7, [0])])
    for version in range(1, 13):
        table.commit("log", version, [written(table, "log", version, [version])])
    assert table.done("once", 7)
    assert table.app_version("once") == 7


def test_threads_that_commit_at_once_all_arrive(table: Table) -> None:
    def work(app: str) -> None:
        for version in (1, 2, 3):
            table.commit(app, version, [written(table, app, version, [version])])

    threads = [threading.Thread(target=work, args=(app,)) for app in ("a", "b", "c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seqs_in(table) == [1, 1, 1, 2, 2, 2, 3, 3, 3]


def test_added_columns_are_null_in_old_files(table: Table) -> None:
    table.commit("log", 1, [written(table, "log", 1, [1])])
    new = [pa.field("_seq", pa.int64()), pa.field("c40", pa.timestamp("us"), nullable=False)]
    table.add_columns(new)
    version = table.version()
    table.add_columns(new)
    assert table.version() == version
    assert DeltaTable(str(table.path)).to_pyarrow_table().column("c40").to_pylist() == [None]


def test_an_unused_folder_is_none_that_an_earlier_attempt_may_still_write_into(
    table: Table,
) -> None:
    first = table.unused_folder("delta", 7)
    first.mkdir(parents=True)
    second = table.unused_folder("delta", 7)
    second.mkdir(parents=True)
    assert len({first, second, table.unused_folder("delta", 7)}) == 3


def test_a_folder_to_write_into_is_empty_and_never_a_committed_one(table: Table) -> None:
    file = written(table, "log", 1, [1])
    assert not table.clear_folder("log", 1).exists()
    file = written(table, "log", 1, [1])
    table.commit("log", 1, [file])
    with pytest.raises(ValueError, match="is committed"):
        table.clear_folder("log", 1)
    assert seqs_in(table) == [1]


def test_vacuum_deletes_only_what_was_unlisted_for_longer_than_the_retention(table: Table) -> None:
    first = written(table, "log", 1, [1])
    table.commit("log", 1, [first])
    table.commit("log", 2, [written(table, "log", 2, [2])], [first.path])
    started = written(table, "log", 3, [3])
    assert table.vacuum(timedelta(hours=1)) == 0
    assert (table.path / started.path).exists()
    assert table.vacuum(timedelta(0)) == 2
    assert not (table.path / first.path).exists()
    assert seqs_in(table) == [2]


@pytest.mark.parametrize(
    "setting", [{"delta.enableDeletionVectors": "true"}, {"delta.columnMapping.mode": "name"}]
)
def test_a_table_we_would_misread_is_refused(tmp_path: Path, setting: dict[str, str]) -> None:
    DeltaTable.create(str(tmp_path), SCHEMA, configuration=setting)
    with pytest.raises(StorageDamaged, match="misread"):
        Table(tmp_path).files()


def test_a_missing_table_is_damage(tmp_path: Path) -> None:
    with pytest.raises(StorageDamaged, match="is missing"):
        Table(tmp_path / "none").files()


def test_an_unreadable_log_is_damage_with_something_to_do(table: Table) -> None:
    (table.path / "_delta_log" / f"{0:020}.json").write_text("garbage{")
    with pytest.raises(StorageDamaged, match="cannot be read") as raised:
        table.version()
    assert raised.value.hint
    assert "\n" not in (raised.value.detail or "")


@pytest.mark.parametrize("name", ["a%20b", "a\\b", "a\tb", "a[b]", "a*", "a?", "a{b,c}"])
def test_a_folder_that_delta_or_spark_would_look_for_elsewhere_is_refused(
    tmp_path: Path, name: str
) -> None:
    with pytest.raises(ConfigError, match="cannot hold tables"):
        Table.create(tmp_path / name, SCHEMA)
    assert list(tmp_path.iterdir()) == []


def test_who_lost_the_lease_commits_nothing_to_tables_of_that_warehouse(tmp_path: Path) -> None:
    def lost() -> None:
        raise LeaseLost("taken over")

    mine, other = (
        Table.create(tmp_path / name / "t", pa.schema([("x", pa.int64())])) for name in "ab"
    )
    with fenced(tmp_path / "a", lost):
        with pytest.raises(LeaseLost):
            mine.commit("app", 1)
        assert other.commit("app", 1) == 1
    assert mine.version() == 0
    assert mine.commit("app", 1) == 1
