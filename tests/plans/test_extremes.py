# ruff: noqa: E501 - a statement is read best on one line
"""MIN and MAX over groups of many values whose ends come and go: right at every cn.

Groups often have the same number (`sqlite_engine.py`), and a fold by value answers from any cn.
"""

from __future__ import annotations

import os
import random

import pyarrow as pa
import pytest

from steadyview.plans.ends import Ends
from steadyview.plans.versions import Logged, Reply
from tests.plans.extreme_mutants import MUTANTS, Mutant
from tests.plans.histories import crowded
from tests.plans.read_texts import wrong_text
from tests.plans.texts import Text

HISTORIES = int(os.environ.get("STEADYVIEW_HISTORIES", "120"))
TRIES = 100

TEXTS = {
    "least": "SELECT c0, MIN(c1) AS m FROM r0 GROUP BY c0",
    "both ends": "SELECT c0, MIN(c1) AS m, MAX(c1) AS x FROM r0 GROUP BY c0",
    "of all rows": "SELECT MIN(c1) AS m FROM r0",
    "of all rows, beside": "SELECT MAX(c1) AS x, MIN(c0) AS m, COUNT(*) AS n, SUM(c1) AS s FROM r0",
    "two expressions": "SELECT c0, MIN(c1) AS m, MAX(COALESCE(c1, 4) - c0) AS x FROM r0 GROUP BY c0",
    "beside totals": "SELECT c0, MAX(c1) AS x, COUNT(*) AS n, COUNT(c1) AS k, SUM(c1) AS s, AVG(c1) AS a FROM r0 GROUP BY c0",
    "two keys": "SELECT c0, c1 % 3 AS r, MIN(c1) AS m, COUNT(*) AS n FROM r0 GROUP BY c0, c1 % 3",
    "HAVING": "SELECT c0, MIN(c1) AS m FROM r0 GROUP BY c0 HAVING MAX(c1) - MIN(c1) > 3",
    "HAVING a count": "SELECT c0, MAX(c1) AS x FROM r0 GROUP BY c0 HAVING COUNT(*) > 2",
    "HAVING of all rows": "SELECT MIN(c1) AS m FROM r0 HAVING COUNT(*) > 9",
    "not shown": "SELECT c0 FROM r0 GROUP BY c0 HAVING MIN(c1) = 0",
    "of a join": "SELECT x.c0, MIN(x.c1 + y.c1) AS m, MAX(y.c1) AS h FROM r0 x JOIN r1 y ON x.c0 = y.c0 GROUP BY x.c0",
    "of an outer join": "SELECT x.c1 AS g, MAX(y.c1) AS h, COUNT(*) AS n FROM r0 x LEFT JOIN r1 y ON x.c1 = y.c1 GROUP BY x.c1",
    "joined": "SELECT a.c0, a.m, b.x FROM (SELECT c0, MIN(c1) AS m FROM r0 GROUP BY c0) a LEFT JOIN (SELECT c0, MAX(c1) AS x, COUNT(*) AS n FROM r1 GROUP BY c0) b ON a.c0 = b.c0",
    "of a union": "SELECT c0, MIN(c1) AS m, SUM(c1) AS s FROM (SELECT c0, c1 FROM r0 UNION ALL SELECT c0, c1 FROM r1) GROUP BY c0",
    "under set operations": "(SELECT c0, MIN(c1) AS m FROM r0 GROUP BY c0) EXCEPT (SELECT c0, MIN(c1) AS m FROM r1 GROUP BY c0)",
    "of an extreme": "SELECT MAX(m) AS x FROM (SELECT c0, MIN(c1) AS m FROM r0 GROUP BY c0)",
    "asked": "SELECT c0, c1 FROM r0 WHERE c1 IN (SELECT MIN(c1) FROM r1 GROUP BY c0)",
}
LITE = {
    "under set operations": "SELECT * FROM (SELECT c0, MIN(c1) AS m FROM r0 GROUP BY c0) EXCEPT SELECT * FROM (SELECT c0, MIN(c1) AS m FROM r1 GROUP BY c0)",
    "beside totals": TEXTS["beside totals"].replace("AVG(c1)", "SUM(c1) / COUNT(c1)"),
}


def wrong(name: str, seed: int) -> str | None:
    text = Text(TEXTS[name], LITE.get(name, TEXTS[name]))
    return wrong_text(text, seed, crowded(random.Random(seed)))


@pytest.mark.parametrize("name", TEXTS)
def test_extremes_are_right_at_every_cn(name: str) -> None:
    for seed in range(HISTORIES // 4):
        assert wrong(name, seed) is None


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.__name__)
def test_a_wrong_reading_of_extremes_is_convicted(mutant: Mutant) -> None:
    with mutant():
        assert any(_convicts(seed) for seed in range(TRIES))


def _convicts(seed: int) -> bool:
    names = ("least", "beside totals", "of all rows, beside")
    try:
        return wrong(names[seed % len(names)], seed) is not None
    except AssertionError:
        return True


def test_of_a_group_little_is_read() -> None:
    rows = pa.table({"c0": [0] * 10_000, "c1": range(10_000)})
    log = pa.table({"c0": [0, 0, 0], "c1": [0, 7, 20_000], "_count": [-1, -1, 1], "_cn": [5, 6, 8]})
    reply = Reply(rows, log["_cn"].to_numpy() <= 0)
    found = Ends((0,), 1).at((5, 9), reply, Logged(log))
    assert sorted(found["c1"].to_pylist()) == [1, 7, 9_999]


def test_nan_is_read_with_the_ends() -> None:
    nan = float("nan")
    rows = pa.table({"c0": [1, 1, 1, 1, None, None], "c1": [2.0, 1.0, nan, 3.0, None, nan]})
    found = Ends((0,), 1).of(rows, pa.table({"c1": pa.array([], pa.float64())}))
    assert sorted(map(str, found["c1"].to_pylist())) == ["1.0", "3.0", "None", "nan", "nan"]
