"""MIN and MAX of every kind of value on Spark, computed groups among them: right inside batches.

Which keys of a state are touched is asked first, as it is of large states.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import steadyview
from steadyview.warehouse import node_statement
from tests.system.databases import SqliteFile, write_project
from tests.system.maintained import capturing

VIEWS = {
    "texts": (
        "SELECT k, MIN(CAST(x AS STRING)) AS low, MAX(CONCAT('é', x)) AS high FROM s.t GROUP BY k"
    ),
    "doubles": (
        "SELECT k, MIN(d) AS low, MAX(d) AS high FROM (SELECT k, CASE WHEN x > 7 THEN "
        "CAST('NaN' AS DOUBLE) ELSE x / 2D END AS d FROM s.t) GROUP BY k"
    ),
    "decimals": "SELECT MIN(CAST(x AS DECIMAL(20,8)) / 3) AS low, AVG(x) AS mean FROM s.t",
    "days": (
        "SELECT x % 3 AS h, MAX(DATE_ADD(DATE '2024-02-27', CAST(x AS INT))) AS high "
        "FROM s.t GROUP BY x % 3"
    ),
    "truths": (
        "SELECT k, MIN(x > 3) AS every_one, MAX(x > 3) AS some FROM s.t GROUP BY k "
        "HAVING COUNT(*) > 1"
    ),
    "bytes": (
        "SELECT MIN(CAST(CAST(x AS STRING) AS BINARY)) AS low, MAX(x * 2 + k) AS high FROM s.t"
    ),
}
BATCHES, STEPS = 2, 5


def test_extremes_of_all_types_are_right_inside_batches(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_statement, "_WORTH_A_STATEMENT", 0)
    dice = random.Random(5)
    table = SqliteFile(tmp_path / "s.db")
    table.create("t", "k INTEGER, x INTEGER")
    _change(dice, table)
    folder = write_project(tmp_path / "project", {"s": table}, VIEWS)
    cns: list[int] = []
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        for _ in range(BATCHES):
            with capturing(wh) as admit:
                for _ in range(STEPS):
                    _change(dice, table)
                    cns.append(admit("s"))
            wh.run_once()
        assert len(set(cns)) == BATCHES * STEPS
        for cn in (cns[1], cns[STEPS + 2], cns[-1]):
            assert [v for v in wh.verify(at=cn, nodes=True) if not v.equal] == []
    table.close()


def _change(dice: random.Random, table: SqliteFile) -> None:
    value = lambda: dice.choice((*map(str, range(12)), "NULL"))  # noqa: E731
    with table.writer().transaction() as writer:
        rows = ", ".join(f"({dice.choice('12')}, {value()})" for _ in range(4))
        end = dice.choice(("MIN", "MAX"))
        writer.execute(f"INSERT INTO t VALUES {rows}")
        writer.execute(f"DELETE FROM t WHERE x = (SELECT {end}(x) FROM t)")
