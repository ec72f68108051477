"""Verification: sources read anew, taken back to a cn by the update log, whatever lies between."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import steadyview
from steadyview.engine.carried import raising
from steadyview.engine.failures import is_data_error, reason
from steadyview.engine.tagged_log import ARROW_LIMIT
from steadyview.errors import SourceDiverged
from steadyview.runtime.warehouse import Warehouse
from steadyview.warehouse.view_store import Shape, ViewStore
from tests.system.databases import SqliteFile, write_project
from tests.system.maintained import capturing

VIEWS = {
    "names": "SELECT name FROM shop.goods",
    "towns": "SELECT town, COUNT(*) AS n FROM shop.buyers GROUP BY town",
}
MANY, WIDE = ARROW_LIMIT + 10_000, 200


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[SqliteFile]:
    database = SqliteFile(tmp_path / "shop.db")
    database.create("goods", "name TEXT")
    database.create("buyers", "town TEXT")
    database.writer().execute("INSERT INTO goods VALUES ('pen')")
    database.writer().execute("INSERT INTO buyers VALUES ('Bonn')")
    yield database
    database.close()


@pytest.fixture
def wh(shop: SqliteFile, tmp_path: Path, spark: SparkSession) -> Iterator[Warehouse]:
    folder = write_project(tmp_path / "shop", {"shop": shop}, VIEWS)
    with steadyview.open(folder, spark=spark) as opened:
        opened.run_once()
        yield opened


@contextmanager
def arrow_watched() -> Iterator[pa.MemoryPool]:
    """Knows how much Arrow holds in this process at once."""
    usual = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(pool)
    try:
        yield pool
    finally:
        pa.set_memory_pool(usual)


def test_many_log_rows_do_not_pass_the_driver(wh: Warehouse, shop: SqliteFile) -> None:
    """They came and went, so that the answer has none of them."""
    half = MANY // 2
    numbers = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {half})"
    with capturing(wh) as admit:
        shop.writer().execute(f"{numbers} INSERT INTO goods SELECT printf('%0{WIDE}d', i) FROM n")
        admit("shop")
        shop.writer().execute("DELETE FROM goods WHERE name <> 'pen'")
        admit("shop")
    with arrow_watched() as pool:
        (found,) = wh.verify(["names"], at=0)
    assert (found.equal, found.compensated) == (True, MANY)
    assert pool.max_memory() < MANY * WIDE / 5


def test_changes_that_passed_the_capture_by_are_an_error(wh: Warehouse, shop: SqliteFile) -> None:
    shop.writer().execute("INSERT INTO goods VALUES ('ink'), ('cup')")
    wh.run_once()
    with shop.writer().transaction() as writer:
        writer.execute("DELETE FROM goods WHERE name = 'ink'")
        # by somebody who knows how the log is guarded
        writer.execute("DELETE FROM _steadyview_log WHERE count = -1")
        writer.execute("UPDATE _steadyview_written SET seq = seq - 1")
    with pytest.raises(SourceDiverged, match='captured changes of "shop.goods"') as found:
        wh.verify(["names"], at=0)
    assert "steadyview source resnapshot shop" in str(found.value.hint)
    names, towns = wh.verify(at=0)
    assert (names.equal, names.error) == (False, str(found.value))
    assert towns.equal


def test_a_recomputed_view_stops_with_the_same_words(spark: SparkSession) -> None:
    ours = SourceDiverged("the fact", detail="it's so", hint="do this", source="shop")
    row = "NAMED_STRUCT('a', 2)"
    with pytest.raises(PySparkException) as found:
        spark.sql(f"SELECT {raising(ours, row)}").collect()
    assert is_data_error(found.value)
    assert reason(found.value) == str(ours)


def spoil(file: Path, column: str) -> None:
    """Let a stored number be one more, unnoticed by checksums."""
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    rows = pq.read_table(file)
    more = pc.add(rows[column], 1).cast(rows[column].type)
    pq.write_table(rows.set_column(rows.column_names.index(column), column, more), file)


def test_a_hidden_node_with_other_rows_or_another_state_is_found(
    shop: SqliteFile, tmp_path: Path, spark: SparkSession
) -> None:
    views = {
        "often": "SELECT n, COUNT(*) AS towns FROM (SELECT town, COUNT(*) AS n, MAX(town) AS m "
        "FROM shop.buyers GROUP BY town) GROUP BY n",
        "names": "SELECT DISTINCT name FROM shop.goods",
    }
    folder = write_project(tmp_path / "nodes", {"shop": shop}, views)
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        shop.writer().execute("INSERT INTO buyers VALUES ('Bonn'), ('Ulm'), (NULL)")
        wh.run_once()
        equal = {(v.view, v.part): v.equal for v in wh.verify(nodes=True)}
        assert all(equal.values())
        hidden = sorted({name for name, _ in equal if name.startswith("~")})
        assert len(hidden) == 3
        assert len(equal) == 2 + 2 + len(hidden) + 2
        assert {v.view for v in wh.verify(["names"], nodes=True)} == {"names"}
        assert [v.part for v in wh.verify(["often"], at=0, nodes=True)].count("state") == 3

        stated = next(name for name, part in equal if part == "state" and name in hidden)
        rows = {r.name: r for r in wh._catalog.views.all()}
        store = ViewStore(folder / "warehouse", rows[stated], Shape())
        spoil(Path(store.state.files()[0].path), "_rows")
        wrong = [(v.view, v.part) for v in wh.verify(nodes=True) if not v.equal]
        assert wrong == [(stated, "state")]
        with closing(sqlite3.connect(folder / "warehouse" / "catalog.db")) as catalog, catalog:
            # its first base is taken for its newest
            at = (rows[stated].cn, rows[stated].id)
            catalog.execute("UPDATE bases SET base_cn = ? WHERE view = ?", at)
        wrong = [(v.view, v.part) for v in wh.verify(nodes=True) if not v.equal]
        assert wrong == [(stated, "rows"), (stated, "state")]
