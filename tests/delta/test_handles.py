"""A kept handle never shows anything else than opening the table anew would."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from steadyview.delta import ParquetSink, Table
from steadyview.delta.handles import Handles
from steadyview.errors import StorageDamaged

SCHEMA = pa.schema([("_cn", pa.int64())])


def write(table: Table, app: str, version: int, rows: int = 1) -> None:
    path = table.unused_folder(app, version) / "part-0.parquet"
    sink = ParquetSink(table.path, path, SCHEMA, ("_cn",))
    sink.write(pa.table({"_cn": [version] * rows}))
    table.commit(app, version, [sink.close()])


def made(folder: Path, commits: int) -> Table:
    table = Table.create(folder, SCHEMA, ranged=("_cn",))
    for version in range(1, commits + 1):
        write(table, "log", version)
    return table


def newest_commit(table: Table) -> Path:
    return table.path / "_delta_log" / f"{table.version():020}.json"


@pytest.mark.parametrize("commits", [3, 9, 10, 11, 23])
def test_a_table_is_opened_once_as_long_as_nobody_writes(tmp_path, commits):
    table, handles, opened = made(tmp_path / "t", commits), Handles(), []

    def open_() -> DeltaTable:
        opened.append(1)
        return table._at()

    for _ in range(5):
        assert handles.newest(table.path, open_).version == commits
    assert len(opened) == 1
    write(table, "log", commits + 1)
    assert handles.newest(table.path, open_).version == commits + 1


def test_commits_of_other_programs_are_seen(tmp_path):
    table = made(tmp_path / "t", 3)
    assert len(table.files()) == 3
    there = str(tmp_path / "t")
    DeltaTable(there).optimize.compact()
    assert [f.relative for f in table.files()] == DeltaTable(there).get_add_actions()[
        "path"
    ].to_pylist()


@pytest.mark.parametrize("version", [2, 11, 12])
def test_a_log_damaged_in_place_is_found_though_a_handle_is_kept(tmp_path, version):
    table = made(tmp_path / "t", 12)
    assert table.version() == 12
    commit = table.path / "_delta_log" / f"{version:020}.json"
    commit.write_bytes(b"{" * commit.stat().st_size)
    if version == 2:
        # behind a checkpoint: nobody reads it
        assert table.version() == 12
        return
    with pytest.raises(StorageDamaged):
        table.version()


def test_a_damaged_checkpoint_is_found_though_a_handle_is_kept(tmp_path):
    table = made(tmp_path / "t", 12)
    assert table.version() == 12
    (checkpoint,) = (table.path / "_delta_log").glob("*.checkpoint.parquet")
    checkpoint.write_bytes(checkpoint.read_bytes()[:100])
    with pytest.raises(StorageDamaged):
        table.files()


def test_a_commit_taken_away_is_missed(tmp_path):
    table = made(tmp_path / "t", 5)
    assert len(table.files()) == 5
    newest_commit(table).unlink()
    assert table.version() == 4
    assert len(table.files()) == 4


def test_a_table_made_anew_in_the_same_place_is_another_one(tmp_path):
    table = made(tmp_path / "t", 3)
    assert table.version() == 3
    shutil.rmtree(table.path)
    made(tmp_path / "t", 2)
    assert table.version() == 2
    shutil.rmtree(table.path)
    with pytest.raises(StorageDamaged):
        table.version()


def test_a_commit_with_the_same_time_as_the_last_look_is_seen(tmp_path):
    table = made(tmp_path / "t", 3)
    log = table.path / "_delta_log"
    assert table.version() == 3
    times = os.stat(log)
    write(table, "log", 4)
    os.utime(log, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert table.version() == 4


def test_no_more_handles_are_kept_than_wanted(tmp_path):
    tables, handles = [made(tmp_path / f"t{i}", 1) for i in range(3)], Handles(most=2)
    for table in tables:
        handles.newest(table.path, table._at)
    assert len(handles._kept) == 2


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(["write", "other", "look", "checkpoint"]), max_size=25))
def test_every_look_shows_what_is_there(tmp_path_factory, doings):
    folder = tmp_path_factory.mktemp("any") / "t"
    table, version = made(folder, 1), 1
    for doing in doings:
        if doing in ("write", "other"):
            version += 1
            write(table, doing, version)
        elif doing == "checkpoint":
            DeltaTable(str(folder)).create_checkpoint()
        fresh = DeltaTable(str(folder))
        assert table.version() == fresh.version()
        assert len(table.files()) == fresh.get_add_actions().num_rows
        assert table.app_version("other") == (fresh.transaction_version("other") or -1)


def test_a_table_made_anew_while_it_is_opened_is_opened_again(tmp_path):
    table, handles = made(tmp_path / "t", 2), Handles()

    def open_() -> DeltaTable:
        handle = table._at()
        shutil.rmtree(table.path)
        made(tmp_path / "t", 2)
        return handle

    stale = handles.newest(table.path, open_)
    fresh = handles.newest(table.path, table._at)
    assert stale.handle.metadata().id != fresh.handle.metadata().id
    assert fresh.handle.metadata().id == DeltaTable(str(table.path)).metadata().id


def test_a_commit_put_back_with_its_old_times_is_seen(tmp_path):
    table = made(tmp_path / "t", 3)
    assert len(table.files()) == 3
    commit = newest_commit(table)
    times, text = os.stat(commit), commit.read_text()
    commit.write_text(text.replace("part-0", "part-9"))
    os.utime(commit, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert os.stat(commit).st_size == times.st_size
    shown = DeltaTable(str(table.path)).get_add_actions()["path"].to_pylist()
    assert [f.relative for f in table.files()] == sorted(shown)
