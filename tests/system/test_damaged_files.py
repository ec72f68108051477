"""A file that is not what was written is named; its views stop, the others go on."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import steadyview
from steadyview.engine.failures import described
from steadyview.errors import StorageDamaged
from steadyview.runtime.warehouse import Warehouse
from tests.system.databases import SqliteFile, write_project
from tests.system.maintained import capturing, read, rolling

VIEWS = {
    "halved": "SELECT id, name FROM s.p",
    "emptied": "SELECT name, COUNT(*) AS n FROM s.p GROUP BY name",
    "flipped": "SELECT name, id FROM s.p",
    "fine": "SELECT COUNT(*) AS n FROM s.p",
    "other": "SELECT i FROM s.t",
}


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteFile]:
    database = SqliteFile(tmp_path / "s.db")
    database.create("p", "id INTEGER, name TEXT")
    database.create("t", "i INTEGER")
    database.writer().execute("INSERT INTO p VALUES (1, 'a needle'), (2, 'b needle')")
    yield database
    database.close()


@pytest.fixture
def wh(database: SqliteFile, tmp_path: Path, spark: SparkSession) -> Iterator[Warehouse]:
    folder = write_project(tmp_path / "project", {"s": database}, VIEWS)
    with steadyview.open(folder, spark=spark) as opened:
        opened.run_once()
        yield opened


def halved(data: bytes) -> bytes:
    return data[: len(data) // 2]


def emptied(_: bytes) -> bytes:
    """Spark would take it for a file without rows."""
    return b""


def flipped(data: bytes) -> bytes:
    """Another value, which can be read as well as the one that was written."""
    assert b"needle" in data[: len(data) // 2]
    return data.replace(b"needle", b"noodle", 1)


def tamper(file: Path, how) -> None:
    file.write_bytes(how(file.read_bytes()))
    # Hadoop's own checksum, which only files of Spark's have
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


def errors(wh: Warehouse) -> dict[str, str | None]:
    return {v.name: v.error for v in wh.status().views}


def test_a_damaged_base_file_is_named_and_stops_its_view_alone(
    wh: Warehouse, database: SqliteFile
) -> None:
    damaged = {}
    for how in (halved, emptied, flipped):
        view = how.__name__
        files = (wh.project.warehouse / "nodes").glob(f"{view}-*/base/data/**/*.parquet")
        damaged[view] = max(files, key=lambda file: file.stat().st_size)
        tamper(damaged[view], how)
        with pytest.raises(Exception) as found:  # noqa: PT011 - ours at once, or Spark's
            read(wh, view)
        told = described(found.value) or found.value
        assert isinstance(told, StorageDamaged)
        assert told.message == f'file "{damaged[view]}" is damaged'
    database.writer().execute("INSERT INTO p VALUES (3, 'c')")
    with rolling():
        wh.run_once()
    found = errors(wh)
    assert (found["fine"], found["other"]) == (None, None)
    for view, file in damaged.items():
        assert str(file) in str(found[view])
    assert {v.name for v in wh.status().views if v.state == "stopped"} == set(damaged)


def test_a_damaged_log_file_is_named_and_stops_its_readers_alone(
    wh: Warehouse, database: SqliteFile
) -> None:
    with capturing(wh) as admit:
        database.writer().execute("INSERT INTO t VALUES (1)")
        admit("s")
        database.writer().execute("INSERT INTO p VALUES (7, 'c needle')")
        admit("s")
    (file,) = wh._parts.log.files(wh._plan("fine").relations[0].name)
    tamper(Path(file), flipped)
    wh.run_once()
    found = errors(wh)
    assert found.pop("other") is None
    assert all(f'file "{file}" is damaged' in str(error) for error in found.values())


def test_a_deleted_log_is_refused_and_never_made_anew(wh: Warehouse) -> None:
    table = wh._parts.log.table(wh._plan("other").relations[0].name).path
    shutil.rmtree(table)
    for _ in range(2):
        with pytest.raises(StorageDamaged) as found:
            wh.run_once()
        assert found.value.message == 'the update log of "s.t" is missing'
        assert str(table) in str(found.value.detail)
    assert not table.exists()
