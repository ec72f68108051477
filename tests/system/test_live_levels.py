"""Every algorithm on three live databases under concurrent writers: its states keep its promise."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from examples.live_levels import Databases, Seen, caught, levels
from steadyview.maintenance.algorithms import KINDS
from tests.conftest import SOAK
from tests.servers import shared_postgres

TRANSACTIONS = 5
ALIKE = {"eca-key", "g-strobe", "sweep-parallel", "sweep-pipelined", "sweep-whole"}
"""On live databases they do what another one does."""
ALGORITHMS = [*KINDS, "c-t-strobe:3", "nested-sweep:2"] if SOAK else [*KINDS.keys() - ALIKE]


@pytest.mark.slow
def test_every_algorithm_keeps_its_promise_and_conventional_is_caught(
    tmp_path: Path, spark: SparkSession
) -> None:
    databases = Databases(shared_postgres(), tmp_path, "all")
    found = levels(databases, tmp_path / "project", ALGORITHMS, TRANSACTIONS, spark)
    assert [s.algorithm for s in found] == ALGORITHMS
    assert min(s.transactions for s in found) > 0
    for seen in found:
        if seen.algorithm != "conventional":
            assert seen.as_promised, seen
    culprit = next(s for s in found if s.algorithm == "conventional")
    assert culprit.as_promised or caught(lambda n: again(n, tmp_path, spark)).level == "none"


def again(number: int, folder: Path, spark: SparkSession) -> Seen:
    """Conventional maintenance alone, with other luck."""
    place = folder / f"again-{number}"
    place.mkdir()
    databases = Databases(shared_postgres(), place, f"again_{number}")
    (seen,) = levels(databases, place / "project", ["conventional"], 16, spark, number)
    return seen
