"""The pairs of a join are known from key counts, before it runs."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from steadyview.plans.hot_keys import ALL, STILL, Counting, Pairs, hot_joins, key_counts
from steadyview.plans.inner_join import Equality, InnerJoin
from steadyview.plans.moves import FOREVER
from steadyview.plans.operator import Operator, Rendering, walk
from steadyview.plans.project import Project
from steadyview.plans.scan import Scan
from steadyview.plans.split_join import SplitJoin
from tests.plans.sqlite_engine import Engine, SqliteDialect
from tests.plans.trees import Growing

STAYS = "_from = 0 AND _to = {FOREVER}".replace("{FOREVER}", str(FOREVER))


def versions(dice: random.Random) -> pa.Table:
    """Some rows that stay, some that come or go; all hold at cn 5, so that all meet."""
    rows = dice.randint(0, 6)
    columns = {
        f"c{i}": pa.array([dice.choice((0, 1, 2, None)) for _ in range(rows)], pa.int64())
        for i in (0, 1)
    }
    times = {
        "_n": [1] * rows,
        "_from": [dice.choice((0, 0, 0, 3)) for _ in range(rows)],
        "_to": [dice.choice((FOREVER, FOREVER, 7)) for _ in range(rows)],
    }
    return pa.table({**columns, **{k: pa.array(v, pa.int64()) for k, v in times.items()}})


class Inputs:
    """Versions for the scans of a block."""

    def __init__(self, dice: random.Random, scans: int) -> None:
        self._tables = [versions(dice) for _ in range(scans)]
        self._engine = Engine()
        for i, table in enumerate(self._tables):
            self._engine.put_table(f"v{i}", table)

    def counts(self, scan: int, columns: tuple[int, ...]) -> pa.Table:
        return key_counts(self._tables[scan], [f"c{i}" for i in columns])

    def joined(self, operator: Operator) -> tuple[int, int]:
        """How many versions the operator really has, and how many of them never change."""
        names = {i: f"v{i}" for i in range(len(self._tables))}
        rendering = Rendering(SqliteDialect(), names)
        rows = rendering.part(operator.versions(rendering))
        count = f"SELECT COUNT(*), COUNT(*) FILTER (WHERE {STAYS}) FROM {rows}"
        every, still = self._engine.rows(rendering.statement(count))[0]
        return int(every), int(still)


def plain(join: InnerJoin) -> bool:
    """Whether nothing but equalities decides, of which one side's columns are at one scan."""
    below = [o for o in walk(join) if isinstance(o, InnerJoin)]
    return all(o.condition is None and len(o.equalities) <= 1 for o in below)


def test_pairs_of_inner_joins_are_exact() -> None:
    compared = 0
    for seed in range(600):
        dice = random.Random(seed)
        growing = Growing(dice, [0], ("inner",))
        block = growing.tree(dice.randint(1, 3)).operator
        inputs = Inputs(dice, len(growing.reads))
        for join in (o for o in walk(block) if isinstance(o, InnerJoin) and plain(o)):
            every, still = inputs.joined(join)
            counting = Counting(inputs.counts)
            assert counting.pairs(join) == Pairs(every, still), seed
            assert counting.at_most(join) >= every, seed
            compared += 1
    assert compared > 600


def test_pairs_of_other_blocks_are_never_too_few() -> None:
    """Filters, conditions and all but one of several equalities leave fewer than are counted."""
    compared = 0
    for seed in range(900):
        dice = random.Random(seed)
        growing = Growing(dice, [0], ("inner", "filter", "project", "union all"))
        block = growing.tree(dice.randint(1, 3)).operator
        inputs = Inputs(dice, len(growing.reads))
        for join in (o for o in walk(block) if isinstance(o, InnerJoin)):
            every, still = inputs.joined(join)
            counting = Counting(inputs.counts)
            counted = counting.pairs(join)
            if counted is not None:
                assert counting.at_most(join) >= counted.every, seed
                assert counted.every >= every, seed
                assert counted.still >= still, seed
                compared += 1
    assert compared > 300


def hot(rows: int, changed: int, keys: int = 1) -> pa.Table:
    """A relation with `rows` unchanged rows and `changed` new ones, spread over some keys."""
    many = rows + changed
    return pa.table(
        {
            "c0": pa.array(np.arange(many) % keys),
            "c1": pa.array(np.arange(many)),
            "_n": pa.array(np.ones(many, np.int64)),
            "_from": pa.array(np.where(np.arange(many) < rows, 0, 3)),
            "_to": pa.array(np.full(many, FOREVER)),
        }
    )


LEFT, RIGHT = Scan(0, (0, 1)), Scan(1, (0, 1))
SAME_KEY = (Equality("t0_c0", "t1_c0"),)
JOIN = InnerJoin(LEFT, RIGHT, SAME_KEY)
COMPUTED = Project(RIGHT, (("p0", "t1_c0 + 0"),))


@pytest.mark.parametrize(
    ("block", "rows", "changed", "keys", "is_hot"),
    [
        (JOIN, 1_001, 2, 1, True),
        (JOIN, 1_000, 2, 1, False),  # a million pairs are not too many
        (JOIN, 2_000, 600, 1, False),  # a third of the pairs are the change
        (JOIN, 4_000, 2, 4_000, False),  # no key is hot
        (InnerJoin(LEFT, RIGHT), 1_001, 2, 1_001, True),  # without a key, all rows meet
        (Project(JOIN, (("c0", "t0_c1"),)), 1_001, 2, 1, True),
        (SplitJoin("left", LEFT, RIGHT, SAME_KEY), 450, 2, 1, True),
        (SplitJoin("left", LEFT, RIGHT, SAME_KEY), 440, 2, 1, False),  # nor 200,000 to be sorted
        (SplitJoin("semi", LEFT, RIGHT, SAME_KEY), 450, 2, 1, True),
        (SplitJoin("left", LEFT, RIGHT, SAME_KEY, "t0_c1 < t1_c1"), 1_001, 2, 1, False),
        (SplitJoin("full", LEFT, RIGHT, SAME_KEY), 1_001, 2, 1, False),
        (InnerJoin(LEFT, COMPUTED, (Equality("t0_c0", "p0"),)), 1_001, 2, 1, False),
    ],
)
def test_a_join_is_hot_by_its_pairs(
    block: Operator, rows: int, changed: int, keys: int, is_hot: bool
) -> None:
    table = hot(rows, changed, keys)
    found = hot_joins(block, lambda _, columns: key_counts(table, [f"c{i}" for i in columns]))
    assert bool(found) == is_hot


def test_a_hot_prefix_is_found_below_a_join_that_is_not_hot() -> None:
    """The rows that meet there have no partner in the third relation."""
    third = Scan(2, (0, 1))
    block = InnerJoin(JOIN, third, (Equality("t1_c1", "t2_c0"),))
    tables = [hot(1_500, 2), hot(1_500, 2), hot(10, 2, 10_000)]
    found = hot_joins(
        block, lambda scan, columns: key_counts(tables[scan], [f"c{i}" for i in columns])
    )
    assert found == {JOIN}


def test_whole_numbers_of_other_sizes_are_compared() -> None:
    table = hot(1_001, 2)
    narrow = table.set_column(0, "c0", table["c0"].cast(pa.int32()))
    tables = [table, narrow]
    counting = Counting(lambda s, columns: key_counts(tables[s], [f"c{i}" for i in columns]))
    assert counting.pairs(JOIN) == Pairs(1_003.0**2, 1_001.0**2)


def test_counts_add_up() -> None:
    found = key_counts(hot(3, 2, 2), ["c0"]).sort_by("c0")
    assert found.to_pydict() == {"c0": [0, 1], ALL: [3.0, 2.0], STILL: [2.0, 1.0]}
