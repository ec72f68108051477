"""The sweep on Spark and on in-memory bags: the same change at every cn, whatever the answers show.

Generated worlds of 30 and more transactions with an arbitrary reflected set per batch. Both forms
of a partner (raw intervals, versions) must agree with the bags, and the bags with SQLite.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from steadyview.engine.spark_algebra import HOT, SparkAlgebra

from steadyview.engine.session import open_session
from tests.engine.sweeping_on_spark import SparkSweeper, realizable
from tests.maintenance.cases import Case, case, relation, view
from tests.maintenance.definitions import analyzed
from tests.maintenance.sweeping import (
    Generated,
    chosen_showings,
    swept_changes,
    true_changes,
)
from tests.worlds import Seeded, chosen_world

SEEDS = (0, 1, 4, 6, 8, 10)
R, S = relation("s1.r", "xy"), relation("s2.s", "xy")
PAIR = view(
    "SELECT r.y, s.y FROM s1.r AS r JOIN s2.s AS s ON r.x = s.x",
    [R, S],
    [(0, 0, 1, 0)],
    ["t0.c1", "t1.c1"],
)
SELF = view(
    "SELECT a.x, b.y FROM s1.r AS a JOIN s1.r AS b ON a.y = b.x",
    [R, R],
    [(0, 1, 1, 0)],
    ["t0.c0", "t1.c1"],
)


@pytest.fixture(scope="module")
def session(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    return open_session("test", {}, tmp_path_factory.mktemp("warehouse"), spark)


def generated(seed: int) -> Generated:
    """A world of 30 to 40 transactions; for each batch, any set P that a database can show."""
    choices = Seeded(seed)
    world = chosen_world(choices, (30, 40))
    showings = chosen_showings(choices, len(world.transactions))
    return world, [realizable(world, showing) for showing in showings]


@pytest.mark.parametrize("seed", SEEDS)
def test_differential_every_change_for_any_reflected_set(
    seed: int, session: SparkSession, tmp_path: Path
) -> None:
    world, showings = generated(seed)
    definition = analyzed(world)
    on_bags = swept_changes(definition, world, showings)
    assert on_bags == true_changes(world)
    for careful in (False, True):
        folder = tmp_path / f"careful-{careful}"
        on_spark = SparkSweeper(session, folder, careful).changes(definition, world, showings)
        assert on_spark == on_bags, world.view.sql


def hot_rows() -> Case:
    """80 transactions: one row of s changes again and again, each time a partner is inserted."""
    history = []
    for i in range(40):
        history += [[(S, (1, i % 3), -1), (S, (1, (i + 1) % 3), 1)], [(R, (1, i % 5), 1)]]
    shown = set(random.Random(7).sample(range(1, 81), 40))
    return case(PAIR, {S: [(1, 0), (1, 1)]}, history, [(0, 50, shown), (50, 80, shown)])


def hot_self_join() -> Case:
    """A row that matches itself comes and goes, one transaction over both occurrences."""
    flicker = [[(R, (2, 2), 1), (R, (1, 2), 1)], [(R, (2, 2), -1), (R, (1, 2), -1)]]
    shown = set(random.Random(3).sample(range(1, 61), 30))
    return case(SELF, {R: [(2, 2), (2, 3)]}, flicker * 30, [(0, 60, shown)])


@pytest.mark.parametrize("of", [hot_rows(), hot_self_join()], ids=["rows", "self-join"])
def test_differential_a_hot_row_is_consolidated_and_exact(
    of: Case, session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    consolidated = _counted(monkeypatch)
    sweeper = SparkSweeper(session, tmp_path)
    definition = of.view.definition()
    showings = [realizable(of.world, showing) for showing in of.showings]
    assert sweeper.changes(definition, of.world, showings) == true_changes(of.world)
    assert consolidated, f"no partner had more than {HOT} log rows for one value"


def _counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The relations whose partners were made of versions from now on."""
    seen: list[str] = []
    versions = SparkAlgebra._versions

    def counting(self: SparkAlgebra, occurrence, *rest):  # type: ignore[no-untyped-def]
        seen.append(str(occurrence.relation.name))
        return versions(self, occurrence, *rest)

    monkeypatch.setattr(SparkAlgebra, "_versions", counting)
    return seen


def test_differential_a_sweep_without_compensation_is_convicted(
    session: SparkSession, tmp_path: Path
) -> None:
    """The comparison above can fail: answers taken as they are give other changes."""
    of = hot_rows()
    sweeper = SparkSweeper(session, tmp_path, compensated=False)
    changes = sweeper.changes(of.view.definition(), of.world, of.showings)
    assert changes != true_changes(of.world)
