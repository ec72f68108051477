"""The level of a view: what it asks for, or that of what it reads; never more than it has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import steadyview
from steadyview.runtime.checks import ViewCheck
from tests.system.databases import SqliteFile, write_project

ASKS = "CREATE MATERIALIZED VIEW {} TBLPROPERTIES ({}) AS SELECT {}"
STRONG, COMPLETE = "'steadyview.level' = 'strong'", "'steadyview.level' = 'complete'"
RECOMPUTED = "'steadyview.fallback' = 'recompute'"
STROBE = "'steadyview.algorithm' = 'strobe'"
NUMBERED = "id, ROW_NUMBER() OVER (ORDER BY id) AS place FROM shop.goods"
VIEWS = {
    "plain": "SELECT id, name FROM shop.goods",
    "asking": ASKS.format("asking", STRONG, "id, name FROM plain"),
    "inheriting": "SELECT name FROM asking",
    "nested": (
        "SELECT n, COUNT(*) AS names FROM (SELECT name, COUNT(*) AS n FROM inheriting "
        "GROUP BY name) GROUP BY n"
    ),
    "pretending": ASKS.format("pretending", COMPLETE, "name FROM nested JOIN inheriting ON n = 1"),
    "modest": ASKS.format("modest", STRONG, "name FROM asking"),
    "again": ASKS.format("again", RECOMPUTED, NUMBERED),
    "never": ASKS.format("never", f"{RECOMPUTED}, {COMPLETE}", NUMBERED),
    "strobed": ASKS.format("strobed", STROBE, "id, name FROM shop.goods"),
    "above": "SELECT DISTINCT name FROM strobed",
}


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[SqliteFile]:
    found = SqliteFile(tmp_path / "shop.db")
    found.create("goods", "id INTEGER PRIMARY KEY, name TEXT")
    found.writer().execute("INSERT INTO goods VALUES (1, 'ink'), (2, 'cup')")
    yield found
    found.close()


def test_a_view_has_the_level_of_what_it_reads_and_cannot_ask_for_more(
    shop: SqliteFile, tmp_path: Path, spark: SparkSession
) -> None:
    folder = write_project(tmp_path / "project", {"shop": shop}, VIEWS)
    with steadyview.open(folder, spark=spark) as wh:
        checks = {c.name: c for c in wh.check() if isinstance(c, ViewCheck)}
        refused = {n: (c.code, c.line, c.column) for n, c in checks.items() if c.code == "LEVEL"}
        assert refused == {
            "pretending": ("LEVEL", 1, VIEWS["pretending"].index(COMPLETE) + 1),
            "never": ("LEVEL", 1, VIEWS["never"].index(COMPLETE) + 1),
        }
        assert "what it reads is strong" in str(checks["pretending"].message)
        assert "it is recomputed" in str(checks["never"].message)
        wh.run_once()
        levels = {v.name: v.level for v in wh.status().views}
        assert levels == {
            "plain": "complete",
            "asking": "strong",
            "inheriting": "strong",
            "nested": "strong",
            "pretending": None,
            "modest": "strong",
            "again": "strong",
            "never": None,
            "strobed": "convergent",
            "above": "convergent",
        }
        assert {n: wh.explain(n).to_dict()["level"] for n, x in levels.items() if x} == {
            n: x for n, x in levels.items() if x
        }
        hidden = [v for v in wh.graph().vertices if v.kind == "node"]
        assert [v.level for v in hidden] == ["strong"]
        ids = {r.name: r.id for r in wh._catalog.views.all()}
        # another level is another promise over the same rows: nothing is built anew
        file = folder / "views" / "asking.sql"
        file.write_text(VIEWS["asking"].replace(STRONG, "'owner' = 'me'"))
        wh.run_once()
        assert {v.name: v.level for v in wh.status().views}["nested"] == "complete"
        later = {r.name: r.id for r in wh._catalog.views.all()}
        assert [later[n] for n in ("asking", "inheriting", "nested")] == [
            ids[n] for n in ("asking", "inheriting", "nested")
        ]
