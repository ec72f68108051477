"""Each view's table at `<warehouse>/views/<name>`, as any Delta reader finds it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import steadyview
from steadyview.algebra import Bag, Row
from steadyview.runtime.publishing_tables import Tables
from steadyview.runtime.status import ViewStatus
from steadyview.runtime.warehouse import Warehouse
from tests.crash.running import Running
from tests.system.databases import PostgresDatabase, SqliteFile, write_project, write_view
from tests.system.maintained import bag, read, table_bag

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


def check_source(wh: Warehouse, spark: SparkSession, names: list[str]) -> None:
    """Spark's data source gives the view's rows of any cn, with filters pushed to it or not."""

    def load(session: SparkSession, **options: object) -> DataFrame:
        reader = session.read.format("steadyview").option("project", str(wh.project.root))
        return reader.options(**options).load()

    for name in names:
        assert comparable(bag(load(spark, path=name))) == comparable(read(wh, name)), name
    row = wh._catalog.views.get("every_type")
    for cn in (row.start_cn, row.start_cn + 3, row.cn - 1):
        found = bag(load(spark, path="every_type", at=cn))
        assert comparable(found) == comparable(read(wh, "every_type", at=cn)), cn
    session = spark.newSession()
    session.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    session.sql(
        f"CREATE TEMPORARY VIEW v USING steadyview OPTIONS (project '{wh.project.root}',"
        f" path 'EVERY_TYPE', at '{row.start_cn + 1}')"
    )
    for text, left in (("s NOT IN ('new', 'x') AND sm >= 1", False), ("d >= 0 AND b", True)):
        found, expected = session.table("v"), wh.view("every_type").read(at=row.start_cn + 1)
        assert comparable(bag(found.filter(text))) == comparable(bag(expected.filter(text)))
        plan = found.filter(text)._jdf.queryExecution().executedPlan().toString()
        assert bool(re.search(r"\bFilter\b", plan)) == left, "what is taken is not filtered again"
    for options, told in (
        ({"path": "every_typ"}, 'there is no view "every_typ".*\n.*every_type'),
        ({"path": "busy", "project": "/nowhere"}, 'there is no project in "/nowhere"'),
        ({"path": "busy", "at": "999"}, r"cannot be read at cn 999\ndetail: its oldest cn is \d+"),
        ({"path": "busy", "att": "1"}, 'there is no option "att"\nhint: did you mean "at"'),
    ):
        with pytest.raises(PySparkException, match=told):
            load(spark, **options).collect()


def test_a_table_is_its_view_at_the_cn_that_it_names(
    wh: Warehouse, sources: dict[str, Any], spark: SparkSession
) -> None:
    insert(sources, 0, 1, 2, 0, 0)
    wh.run_once()
    shown = [name for name in VIEWS if name != "untold"]
    assert sorted(tables(wh)) == sorted(shown)
    check(wh, shown)
    first = {name: mark(folder) for name, folder in tables(wh).items()}
    insert(sources, 1, 2, 2)
    pg, lite = sources["pg"].writer(), sources["lite"].writer()
    pg.execute("DELETE FROM t WHERE ctid IN (SELECT ctid FROM t WHERE sm = 1 LIMIT 1)")
    pg.execute("UPDATE t SET d = 0.0, s = 'new' WHERE b IS NULL")
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
    check_source(wh, spark, shown)
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
    for gone in ("every_type", "Größe_2", "swept", "upon", "totals"):
        (views / f"{gone}.sql").unlink()
    write_view(tmp_path / "project", "plain", "SELECT k, i FROM lite.u")
    lite = sources["lite"].writer()
    lite.execute("INSERT INTO u VALUES (1, 1), (1, 1), (2, 2), (3, NULL)")
    wh.run_once()
    busy = tables(wh)["busy"]
    # as it was kept once: inside of what others read
    for folder in (wh.project.warehouse / "nodes").iterdir():
        folder.rename(wh.project.warehouse / "views" / folder.name)
    # by what has changed, then not at all
    lite.execute("DELETE FROM u WHERE k = 2")
    wh.run_once()
    assert operations(busy)[2:] == ["Append"]
    wh.run_once()
    assert operations(busy)[2:] == ["Append"]
    # columns of another type, under the same name, in one commit
    other = "SELECT CAST('2026-11-16 10:00:00' AS TIMESTAMP_NTZ) AS at, k FROM lite.u"
    write_view(
        tmp_path / "project", "busy", VIEWS["busy"].replace("SELECT i FROM lite.u", other)
    )
    wh.run_once()
    check(wh, ["busy", "plain"])
    assert operations(busy)[2:] == ["Append", "ADD FEATURE", "Overwrite"]
    assert rows(busy, version=2) == Bag.of([(1,), (1,), (None,)])
    # somebody else wrote to it
    write_deltalake(busy, DeltaTable(busy).to_pyarrow_table(), mode="append")
    wh.run_once()
    check(wh, ["busy", "plain"])
    # files, and the log, damaged or gone
    for spoil in (_cut, _remove_file, _cut_log, shutil.rmtree):
        spoil(busy)
        Tables(wh._parts).now()
        check(wh, ["busy"])
    # while views are kept; a stopped one's stays what it was, also where it has to be mended
    wh._catalog.views.stop("plain", "stopped by a test", None)
    _cut(busy)
    _cut(tables(wh)["plain"])
    lite.execute("INSERT INTO u VALUES (4, 4)")
    seen = wh.status().cn
    with Running(wh) as running:
        running.until(lambda s: s.cn > seen and all(_fresh(v, s.cn) for v in s.views))
    check(wh, ["busy", "plain"])
    assert mark(tables(wh)["plain"])["cn"] == seen
    _gone_with_their_views(wh, tmp_path)


def _gone_with_their_views(wh: Warehouse, tmp_path: Path) -> None:
    """What is not asked for, or is no more, has no table; what is not ours stays."""
    stranger = wh.project.warehouse / "views" / "mine"
    write_deltalake(stranger, pa.table({"a": [1]}))
    wh.drop("plain")
    write_view(tmp_path / "project", "busy", VIEWS["busy"].replace("every batch", "never"))
    write_view(tmp_path / "project", "untold", "SELECT k FROM lite.u")
    wh.run_once()
    assert sorted(tables(wh)) == ["mine", "untold"]
    check(wh, ["untold"])


def _fresh(view: ViewStatus, cn: int) -> bool:
    """Shown at the cn, and written to its table where that is to be after every batch."""
    if view.name == "plain":
        return view.state == "stopped"
    return view.cn == cn and (view.name != "busy" or view.table is not None and view.table.cn == cn)


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
