"""Each view's table at `<warehouse>/views/<name>`, as any Delta reader finds it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

import steadyview
from steadyview.algebra import Bag, Row
from steadyview.runtime.warehouse import Warehouse
from tests.system.databases import PostgresDatabase, SqliteFile, write_project, write_view
from tests.system.maintained import read, table_bag

TYPES = {
    "sm": ("smallint", ["1", "-2", "NULL"]),
    "i": ("int", ["3", "NULL", "4"]),
    "big": ("bigint", ["5000000000", "1", "NULL"]),
    "dec": ("numeric(20,2)", ["12.30", "-0.01", "NULL"]),
    "num": ("numeric", ["1.5", "NULL", "0"]),
    "r": ("real", ["1.25", "'NaN'", "'-0.0'"]),
    "d": ("double precision", ["'-0.0'", "NULL", "'NaN'"]),
    "s": ("text", ["'a''b'", "''", "NULL"]),
    "b": ("boolean", ["true", "NULL", "false"]),
    "day": ("date", ["'0001-01-01'", "'2026-11-16'", "NULL"]),
    "ts": ("timestamp", ["'1500-01-02 03:04:05.000006'", "NULL", "'2026-01-01'"]),
    "tz": ("timestamptz", ["'2026-01-01 00:00:00+02'", "NULL", "'9999-12-31'"]),
    "u": ("uuid", ["'5f0b1c2e-0000-4000-8000-000000000001'", "NULL", "NULL"]),
    "raw": ("bytea", ["'\\x00ff'", "NULL", "''"]),
    "doc": ("jsonb", ["'{\"a\": 1}'", "NULL", "'[]'"]),
}
COLUMNS = ", ".join(TYPES)
VIEWS = {
    "every_type": f"SELECT {COLUMNS} FROM pg.t",
    "totals": "SELECT s, COUNT(*) AS `how many`, SUM(big) AS `a.b` FROM pg.t GROUP BY s",
    "Größe_2": "CREATE MATERIALIZED VIEW `Größe_2` TBLPROPERTIES ('steadyview.fallback' ="
    " 'recompute') AS SELECT i, ROW_NUMBER() OVER (ORDER BY i, k) AS place FROM lite.u",
    "swept": "CREATE MATERIALIZED VIEW swept TBLPROPERTIES ('steadyview.algorithm' = 'sweep') AS"
    " SELECT u.k, t.i FROM lite.u JOIN pg.t ON t.i = u.i",
    "busy": "CREATE MATERIALIZED VIEW busy TBLPROPERTIES ('steadyview.table' = 'every batch') AS"
    " SELECT i FROM lite.u",
    "untold": "CREATE MATERIALIZED VIEW untold TBLPROPERTIES ('steadyview.table' = 'never') AS"
    " SELECT k FROM lite.u",
    "upon": "SELECT n, COUNT(*) AS c FROM (SELECT i, COUNT(*) AS n FROM lite.u GROUP BY i)"
    " GROUP BY n",
}


def tables(wh: Warehouse) -> dict[str, Path]:
    return {f.name: f for f in (wh.project.warehouse / "views").iterdir()}


def mark(folder: Path) -> dict[str, Any]:
    """What the newest commit says of itself."""
    (commit,) = DeltaTable(folder).history(1)
    return dict(json.loads(commit["userMetadata"]))


def rows(folder: Path, version: int | None = None) -> Bag[Row]:
    return comparable(table_bag(DeltaTable(folder, version=version).to_pyarrow_table()))


def comparable(found: Bag[Row]) -> Bag[Row]:
    """Fractions as they are written: NaN is not itself, and -0.0 is 0.0."""
    plain = lambda v: repr(v + 0.0) if isinstance(v, float) else v  # noqa: E731
    return found.map(lambda row: tuple(map(plain, row)))


def check(wh: Warehouse, names: Iterator[str] | list[str]) -> None:
    """Every table is the view at the cn that it names, the newest one."""
    for name in names:
        folder = wh.project.warehouse / "views" / name
        cn = mark(folder)["cn"]
        assert cn == wh._catalog.views.get(name).cn
        assert rows(folder) == comparable(read(wh, name, at=cn)), name


@pytest.fixture
def sources(tmp_path: Path) -> Iterator[dict[str, Any]]:
    made = {"pg": PostgresDatabase(), "lite": SqliteFile(tmp_path / "lite.db")}
    made["pg"].create("t", ", ".join(f"{name} {t}" for name, (t, _) in TYPES.items()))
    made["lite"].create("u", "k INTEGER, i INTEGER")
    yield made
    for database in made.values():
        database.close()


@pytest.fixture
def wh(
    sources: dict[str, Any], tmp_path: Path, spark: SparkSession
) -> Iterator[Warehouse]:
    folder = write_project(tmp_path / "project", sources, VIEWS)
    with steadyview.open(folder, spark=spark) as opened:
        yield opened


def insert(sources: dict[str, Any], *which: int) -> None:
    values = ", ".join(f"({', '.join(v[i] for _, v in TYPES.values())})" for i in which)
    sources["pg"].writer().execute(f"INSERT INTO t VALUES {values}")
    numbers = ", ".join(f"({i}, {i % 2 or 'NULL'})" for i in which)
    sources["lite"].writer().execute(f"INSERT INTO u VALUES {numbers}")


def test_a_table_is_its_view_at_the_cn_that_it_names(
    wh: Warehouse, sources: dict[str, Any]
) -> None:
    insert(sources, 0, 1, 2, 0, 0)
    wh.run_once()
    shown = [name for name in VIEWS if name != "untold"]
    assert sorted(tables(wh)) == sorted(shown)
    check(wh, shown)
    insert(sources, 1, 2, 2)
    pg, lite = sources["pg"].writer(), sources["lite"].writer()
    pg.execute("DELETE FROM t WHERE ctid IN (SELECT ctid FROM t WHERE sm = 1 LIMIT 1)")
    pg.execute("UPDATE t SET d = 0.0, s = 'new' WHERE b IS NULL")
    wh.run_once()
    check(wh, shown)
    first = {name: mark(folder) for name, folder in tables(wh).items()}
    lite.execute("DELETE FROM u WHERE k = 2")
    pg.execute("DELETE FROM t WHERE r = 'NaN' OR d = 0")
    wh.run_once()
    check(wh, shown)
    for name, folder in tables(wh).items():
        assert mark(folder)["cn"] > first[name]["cn"]
        assert mark(folder)["view"] == name
        types = {f.name: str(f.type) for f in pa.schema(DeltaTable(folder).schema())}
        found = wh.view(name).read()
        assert list(types) == found.columns
    pg.execute("DELETE FROM t")
    wh.run_once()
    check(wh, shown)
    assert not len(rows(tables(wh)["every_type"]))
    status = {v["name"]: v["table"] for v in wh.status().to_dict()["views"]}
    assert status.pop("untold") is None
    assert {n: (t["path"], t["cn"]) for n, t in status.items()} == {
        n: (str(folder), wh._catalog.views.get(n).cn) for n, folder in tables(wh).items()
    }


def operations(folder: Path) -> list[str]:
    """What each commit did, oldest first."""
    found = DeltaTable(folder).history()
    return [c["operationParameters"].get("mode", c["operation"]) for c in reversed(found)]


def test_a_table_is_written_anew_where_it_is_not_what_we_left(
    wh: Warehouse, sources: dict[str, Any], tmp_path: Path
) -> None:
    views = tmp_path / "project" / "views"
    for other in ("every_type", "Größe_2", "swept", "upon", "totals"):
        (views / f"{other}.sql").unlink()
    write_view(tmp_path / "project", "other", "SELECT k, i FROM lite.u")
    lite = sources["lite"].writer()
    lite.execute("INSERT INTO u VALUES (1, 1), (1, 1), (2, 2), (3, NULL)")
    wh.run_once()
    busy = tables(wh)["busy"]
    # by what has changed, then not at all
    lite.execute("DELETE FROM u WHERE k = 2")
    wh.run_once()
    assert operations(busy)[2:] == ["Append"]
    wh.run_once()
    assert operations(busy)[2:] == ["Append"]
    # columns of another type, under the same name, in one commit
    write_view(
        tmp_path / "project",
        "busy",
        "SELECT CAST('2026-11-16 10:00:00' AS TIMESTAMP_NTZ) AS at, k FROM lite.u",
    )
    wh.run_once()
    check(wh, ["busy", "other"])
    assert operations(busy)[2:] == ["Append", "ADD FEATURE", "Overwrite"]
    assert rows(busy, version=2) == Bag.of([(1,), (1,), (None,)])
    # somebody else wrote to it
    write_deltalake(busy, DeltaTable(busy).to_pyarrow_table(), mode="append")
    wh.run_once()
    check(wh, ["busy", "other"])
    # files, and the log, damaged or gone, while the view moves on or not
    for spoil in (_cut, _remove_file, _cut_log, shutil.rmtree):
        spoil(busy)
        wh.run_once()
        check(wh, ["busy"])
        lite.execute("INSERT INTO u VALUES (4, 4)")
        spoil(tables(wh)["other"])
        wh.run_once()
        check(wh, ["busy", "other"])
    # what is not asked for, or is no more, has no table; what is not ours stays
    stranger = wh.project.warehouse / "views" / "mine"
    write_deltalake(stranger, pa.table({"a": [1]}))
    (views / "other.sql").unlink()
    write_view(tmp_path / "project", "busy", VIEWS["busy"].replace("every batch", "never"))
    write_view(tmp_path / "project", "untold", "SELECT k FROM lite.u")
    wh.run_once()
    assert sorted(tables(wh)) == ["mine", "untold"]
    check(wh, ["untold"])


def _a_file(folder: Path) -> Path:
    (path, *_) = DeltaTable(folder).file_uris()
    return Path(path)


def _cut(folder: Path) -> None:
    _a_file(folder).write_bytes(b"PAR1")


def _remove_file(folder: Path) -> None:
    _a_file(folder).unlink()


def _cut_log(folder: Path) -> None:
    for file in (folder / "_delta_log").iterdir():
        file.write_text("{")
