"""What a batch asks of the sources: at most 2(n-1) lookups whatever its size, and none in vain."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from steadyview.changes import RelationSchema
from steadyview.simulation.window import RowsWanted
from tests.plans.cases import Batch, case, relation

RELATIONS = [relation(f"s{i}.r{i}", "xy") for i in range(5)]
Shape = Callable[[int], str]


def chain(n: int) -> str:
    return _select(n, [f"r{i}.y = r{i + 1}.x" for i in range(n - 1)])


def star(n: int) -> str:
    return _select(n, [f"r0.y = r{i}.x" for i in range(1, n)])


def unequal(n: int) -> str:
    return _select(n, [f"r{i}.y < r{i + 1}.x" for i in range(n - 1)])


def _select(n: int, links: Sequence[str]) -> str:
    tables = ", ".join(f"s{i}.r{i} AS r{i}" for i in range(n))
    where = f" WHERE {' AND '.join(links)}" if links else ""
    return f"SELECT r0.x FROM {tables}{where}"


def batch(sql: str, n: int, changed: Sequence[RelationSchema], size: int) -> Batch:
    """One batch of `size` transactions over the changed relations in turn."""
    history = [[(changed[i % len(changed)], (1 + i % 7, 1 + i % 5), 1)] for i in range(size)]
    schemas = RELATIONS[:n]
    of = case(sql, schemas, {r: [(1, 1), (2, 1)] for r in schemas}, history, [(0, size, set())])
    assert of.exact()
    (done,) = of.batches()
    return done


@pytest.mark.parametrize("size", [5, 50])
@pytest.mark.parametrize("shape", [chain, star])
@pytest.mark.parametrize("n", [2, 3, 4])
def test_changes_everywhere_cost_at_most_two_lookups_a_join(
    n: int, shape: Shape, size: int
) -> None:
    """Directions that ask for the same column of a relation in one round are one lookup."""
    asked = batch(shape(n), n, RELATIONS[:n], size).lookups
    most = 2 * (n - 1)
    assert len(asked) == most if shape is chain else n <= len(asked) <= most
    assert all(wanted.column is not None for wanted in asked)


@pytest.mark.parametrize("size", [1, 50])
@pytest.mark.parametrize("start", range(4))
def test_changes_at_one_relation_cost_one_lookup_of_each_other(start: int, size: int) -> None:
    done = batch(chain(4), 4, [RELATIONS[start]], size)
    others = [r for r in range(4) if r != start]
    assert sorted(wanted.relation for wanted in done.lookups) == others
    # the nearest first: what they bring is what the next are asked for
    assert [{abs(w.relation - start) for w in each} for each in done.rounds] == [
        {distance} for distance in range(1, len(done.rounds) + 1)
    ]


def test_a_view_of_one_relation_asks_nothing() -> None:
    assert batch(chain(1), 1, RELATIONS[:1], 50).lookups == []


def test_a_batch_without_a_change_of_the_view_asks_nothing() -> None:
    of = case(chain(2), RELATIONS[:2], {}, [[(RELATIONS[0], (1, 1), 1)]], [(1, 1, {1})])
    assert of.batches()[0].lookups == []


def test_a_join_without_an_equality_reads_the_other_side_whole() -> None:
    asked = batch(unequal(2), 2, RELATIONS[:1], 5).lookups
    assert asked == [RowsWanted(1, None, frozenset())]


def test_a_relation_that_is_used_twice_is_asked_for_a_key_once() -> None:
    sql = "SELECT a.x, b.y FROM s0.r0 AS a JOIN s0.r0 AS b ON a.y = b.y"
    for size in (1, 20):
        assert len(batch(sql, 1, RELATIONS[:1], size).lookups) == 1


def test_a_lookup_that_finds_nothing_leads_nowhere() -> None:
    of = case(chain(3), RELATIONS[:3], {}, [[(RELATIONS[0], (1, 1), 1)]], [(0, 1, {1})])
    assert [wanted.relation for wanted in of.batches()[0].lookups] == [1]
