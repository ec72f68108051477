# ruff: noqa: E501 - a statement is read best on one line
"""SELECT texts of every construct, nested, from text to rows: right at every cn.

The texts are read by the product's reader and kept by the product's rules; SQLite runs both these
and the texts themselves. A failing text is made small before it is shown.
"""

from __future__ import annotations

import os

import pytest

from tests.plans.read_texts import Case, case, refused, shrunk, wrong, wrong_text
from tests.plans.texts import Text

TEXTS = int(os.environ.get("STEADYVIEW_TEXTS", "120"))


def judge(tried: Case) -> None:
    try:
        found = wrong(tried)
    except Exception as error:
        small = shrunk(tried).text().spark
        raise AssertionError(f"seed {tried.seed}, depth {tried.depth}: {small}") from error
    if found is not None:
        pytest.fail(f"seed {tried.seed}, depth {tried.depth}: {wrong(shrunk(tried))}")


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_a_text_is_kept_right_at_every_cn(depth: int) -> None:
    tried = [case(10_000 * depth + seed, depth) for seed in range(TEXTS)]
    for each in tried:
        judge(each)
    assert sum(refused(each) for each in tried) < TEXTS / 20


WRITTEN = {
    "USING": "SELECT c0, x.c1, y.c1 AS d FROM r0 x JOIN r0 y USING (c0)",
    "LEFT USING": "SELECT c0, x.c1, y.c1 AS d FROM r0 x LEFT JOIN r0 y USING (c0)",
    "FULL USING": "SELECT c0, x.c1, y.c1 AS d FROM r0 x FULL JOIN (SELECT c1 AS c0, c0 AS c1 FROM r0) y USING (c0)",
    "RIGHT USING": "SELECT c0, x.c1, y.c1 AS d FROM r0 x RIGHT JOIN (SELECT c1 AS c0, c0 AS c1 FROM r0) y USING (c0)",
    "two USING": "SELECT c0, c1 FROM r0 x JOIN r0 y USING (c0, c1)",
    "stars": "SELECT x.*, y.c1 AS d FROM r0 x, r0 y WHERE x.c0 = y.c1",
    "brackets": "SELECT x.c0, z.c1 FROM r0 x LEFT JOIN (r0 y JOIN r0 z ON y.c0 = z.c1) ON x.c0 = y.c1",
    "comma and join": "SELECT x.c0, z.c1 FROM r0 x, r0 y JOIN r0 z ON y.c0 = z.c0 WHERE x.c1 = y.c1",
    "computed below LEFT": "SELECT x.c0, y.one, y.s FROM r0 x LEFT JOIN (SELECT c0, 1 AS one, COALESCE(c1, 0) + 1 AS s FROM r0) y ON x.c1 = y.c0",
    "aggregate below LEFT": "SELECT x.c0, y.n FROM r0 x LEFT JOIN (SELECT c0, COUNT(*) AS n FROM r0 GROUP BY c0) y ON x.c1 = y.c0",
    "LEFT of LEFT": "SELECT x.c0, z.c1 FROM r0 x LEFT JOIN (SELECT y.c0, w.c1 FROM r0 y LEFT JOIN r0 w ON y.c1 = w.c0) z ON x.c0 = z.c0",
    "WHERE on the padded side": "SELECT x.c0, y.c1 FROM r0 x LEFT JOIN r0 y ON x.c0 = y.c1 WHERE y.c0 IS NULL",
    "EXISTS in ON": "SELECT x.c0, y.c1 FROM r0 x LEFT JOIN r0 y ON x.c0 = y.c0 AND EXISTS (SELECT 1 FROM r0 z WHERE z.c1 = y.c1)",
    "key by place": "SELECT c0 + 1 AS k, COUNT(*) AS n FROM r0 GROUP BY 1",
    "key by alias": "SELECT COALESCE(c0, 9) AS k, SUM(c1) AS n FROM r0 GROUP BY k",
    "HAVING of an alias": "SELECT c0, COUNT(*) AS n FROM r0 GROUP BY c0 HAVING n > 1",
    "key inside": "SELECT (c0 + 1) * 2 AS k, COUNT(c1) AS n FROM r0 GROUP BY c0 + 1",
    "DISTINCT of groups": "SELECT DISTINCT COUNT(*) AS n FROM r0 GROUP BY c0, c1",
    "aggregate of aggregate": "SELECT n, COUNT(*) AS m FROM (SELECT c0, COUNT(*) AS n FROM r0 GROUP BY c0) GROUP BY n",
    "groups joined": "SELECT a.c0, a.n, b.s FROM (SELECT c0, COUNT(*) AS n FROM r0 GROUP BY c0) a JOIN (SELECT c1, SUM(c0) AS s FROM r0 GROUP BY c1) b ON a.c0 = b.c1",
    "filter above groups": "SELECT c0 FROM (SELECT c0, COUNT(*) AS n FROM r0 GROUP BY c0) WHERE n > 1",
    "aggregate of nothing": "SELECT COUNT(*) AS n, SUM(c0) AS s FROM r0 WHERE c0 > 5",
    "joined with an aggregate of all": "SELECT x.c0, y.n FROM r0 x CROSS JOIN (SELECT COUNT(*) AS n FROM r0) y",
    "EXISTS beside aggregates": "SELECT c0, COUNT(*) AS n, EXISTS (SELECT 1 FROM r0 y WHERE y.c1 = x.c0) AS e FROM r0 x GROUP BY c0",
    "EXISTS beside an aggregate of all": "SELECT COUNT(*) AS n, EXISTS (SELECT 1 FROM r0 WHERE c0 = 1) AS e FROM r0 x",
    "grouped by EXISTS": "SELECT EXISTS (SELECT 1 FROM r0 y WHERE y.c1 = x.c0) AS e, COUNT(*) AS n FROM r0 x GROUP BY 1",
    "IN of groups": "SELECT c0 FROM r0 WHERE c1 IN (SELECT COUNT(*) FROM r0 GROUP BY c0)",
    "WITH read twice": "WITH w AS (SELECT c0, COUNT(*) AS n FROM r0 GROUP BY c0) SELECT a.c0, b.n FROM w a JOIN w b ON a.c0 = b.n",
    "WITH of WITH": "WITH a AS (SELECT c0 FROM r0), b AS (SELECT c0 FROM a UNION SELECT c0 + 1 FROM a) SELECT x.c0, y.c0 AS d FROM b x LEFT JOIN b y ON x.c0 = y.c0 + 1",
    "nothing is read": "SELECT 1 AS a, 2 AS b",
    "EXISTS without FROM": "SELECT 1 AS a WHERE EXISTS (SELECT 1 FROM r0 WHERE c0 = 1)",
    "UNION binds weaker": "SELECT c0 FROM r0 UNION ALL SELECT * FROM (SELECT c1 FROM r0 INTERSECT SELECT c0 FROM r0)",
    "an alias to the left": "SELECT c0 + 1 AS a, c1 AS b FROM r0 WHERE c0 = 1 OR c1 IS NULL",
}


@pytest.mark.parametrize("text", WRITTEN.values(), ids=WRITTEN)
def test_a_written_text_is_kept_right_at_every_cn(text: str) -> None:
    for seed in range(40):
        assert wrong_text(Text(text, text), seed) is None
