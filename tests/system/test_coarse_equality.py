"""A source that finds more rows equal than Spark does: what was not asked for is not counted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import steadyview
from steadyview.algebra import Bag
from tests.system.databases import SqliteFile, write_project
from tests.system.maintained import read

VIEWS = {
    "placed": "SELECT o.id, c.region FROM shop.orders o JOIN shop.customers c ON c.name = o.name",
    "lines": """SELECT i.what, c.region FROM shop.items i JOIN shop.orders o ON o.id = i.id
                JOIN shop.customers c ON c.name = o.name""",
}


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[SqliteFile]:
    database = SqliteFile(tmp_path / "shop.db")
    database.create("customers", "name TEXT COLLATE NOCASE, region TEXT")
    database.create("orders", "id INTEGER, name TEXT")
    database.create("items", "id INTEGER, what TEXT")
    database.writer().execute("INSERT INTO customers VALUES ('Ann', 'north')")
    database.writer().execute("INSERT INTO orders VALUES (2, 'Ann')")
    yield database
    database.close()


def test_a_row_found_by_two_questions_of_a_batch_counts_once(
    shop: SqliteFile, tmp_path: Path, spark: SparkSession
) -> None:
    """'ann' is asked for in the first round, 'Ann' in the second; SQLite finds 'Ann' both times."""
    folder = write_project(tmp_path / "shop", {"shop": shop}, VIEWS)
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        shop.writer().execute("INSERT INTO orders VALUES (1, 'ann')")
        shop.writer().execute("INSERT INTO items VALUES (2, 'pen')")
        wh.run_once()
        assert read(wh, "lines") == Bag.of([("pen", "north")])
        assert read(wh, "placed") == Bag.of([(2, "north")])
        assert all(verdict.equal for verdict in wh.verify())
