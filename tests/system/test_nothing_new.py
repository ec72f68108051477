"""`run --once` where nothing is new: no Java is started, no text of a view is read.

Proved where there is no Java to be started, and where nothing is remembered of the views' types.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import steadyview
from steadyview.algebra import Bag
from tests.system.databases import SqliteFile, write_project
from tests.system.maintained import read

VIEWS = {
    "counted": (
        "CREATE MATERIALIZED VIEW counted TBLPROPERTIES ('steadyview.level' = 'strong', "
        "'steadyview.table' = 'never') AS SELECT name, COUNT(*) AS n FROM shop.goods GROUP BY name"
    ),
    "often": "SELECT name FROM counted WHERE n > 1 UNION SELECT 'none'",
    "numbered": (
        "CREATE MATERIALIZED VIEW numbered TBLPROPERTIES ('steadyview.fallback' = 'recompute') AS "
        "SELECT name, ROW_NUMBER() OVER (ORDER BY name) AS place FROM shop.goods"
    ),
}
RUN = "from steadyview.cli.app import main; main()"


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[SqliteFile]:
    found = SqliteFile(tmp_path / "shop.db")
    found.create("goods", "name TEXT")
    yield found
    found.close()


def without_java(folder: Path) -> int:
    """The exit code of `steadyview run --once`."""
    command = [sys.executable, "-c", RUN, "run", "--once", "--project", str(folder)]
    nowhere = {**os.environ, "JAVA_HOME": str(folder / "nothing"), "PATH": ""}
    return subprocess.run(command, env=nowhere, capture_output=True, check=False).returncode


def forget_types(folder: Path) -> None:
    """All that Spark has said: whoever plans a view has to ask it again."""
    with closing(sqlite3.connect(folder / "warehouse" / "catalog.db")) as catalog, catalog:
        catalog.execute("DELETE FROM typed WHERE outcome LIKE '{%'")


def rows(folder: Path) -> list[tuple[object, ...]]:
    """All that the catalog knows of the views."""
    with closing(sqlite3.connect(folder / "warehouse" / "catalog.db")) as catalog:
        return catalog.execute("SELECT * FROM views ORDER BY id").fetchall()


def test_neither_spark_nor_planning_where_nothing_is_new(
    shop: SqliteFile, tmp_path: Path, spark: SparkSession
) -> None:
    shop.writer().execute("INSERT INTO goods VALUES ('ink'), ('ink'), ('cup')")
    folder = write_project(tmp_path / "project", {"shop": shop}, VIEWS)
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
    forget_types(folder)
    before = rows(folder)
    assert without_java(folder) == 0
    assert rows(folder) == before

    shop.writer().execute("INSERT INTO goods VALUES ('cup')")
    assert without_java(folder) != 0
    with steadyview.open(folder, spark=spark) as wh:
        # by the plans of the catalog: nothing was changed but rows
        assert wh.run_once().batches == 1
        assert read(wh, "often") == Bag.of([("ink",), ("cup",), ("none",)])
        assert wh.view("numbered").read().count() == 4
        assert all(v.equal for v in wh.verify())
    assert without_java(folder) == 0

    file = folder / "views" / "often.sql"
    file.write_text(file.read_text().replace("n > 1", "n > 2"))
    assert without_java(folder) != 0
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        assert read(wh, "often") == Bag.of([("none",)])
    assert without_java(folder) == 0
