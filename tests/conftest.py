"""What every test shares: Hypothesis' settings, and one Spark for the whole run."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# No deadline: a loaded machine is slow, not wrong.
settings.register_profile(
    "steadyview", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steadyview")


@pytest.fixture(scope="session", autouse=True)
def _no_other_spark() -> Iterator[None]:
    yield
    pyspark = sys.modules.get("pyspark")
    started = pyspark is not None and pyspark.SparkContext._active_spark_context is not None
    assert not started, "a test without the fixture `spark` has started Spark"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The test run's only Spark application; hand it to `steadyview.open(folder, spark=spark)`."""
    from tests.one_spark import one_spark

    folder = tmp_path_factory.getbasetemp()
    shared = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    with one_spark(shared / "spark") as session:
        yield session
