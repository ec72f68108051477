"""What every test shares: Hypothesis' settings, and one Spark for the whole run."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# No deadline: a loaded machine is slow, not wrong.
settings.register_profile(
    "steadyview", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steadyview")

SPARK = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "3g",
    "spark.buffer.pageSize": "2m",
    # most statements run once or twice: the second compiler would never earn its time back (and
    # without it Java takes less room for compiled code than Spark needs)
    "spark.driver.extraJavaOptions": (
        "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
    ),
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.cache.maxEntries": "5000",
    "spark.sql.ui.retainedExecutions": "20",
}


SOAK = "STEADYVIEW_SOAK" in os.environ
"""Whether this is a long trial (`make soak`), with more of everything."""
WITH_SPARK = ("tests/cli/test_commands.py", "tests/crash/", "tests/engine/", "tests/system/")
"""Where the tests with Spark are; those with a Java of their own are in tests/processes/."""


class Scheduling(LoadScopeScheduling):
    """One worker has all the tests with Spark, and with them the run's only Spark application.

    They take longest, so they come first and the others give way to them. The others go to whoever
    is free, those of a file together: they share servers.
    """

    def _split_scope(self, nodeid: str) -> str:
        return "with Spark" if nodeid.startswith(WITH_SPARK) else nodeid.partition("::")[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling:
    return Scheduling(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    astray = [
        item.nodeid
        for item in items
        if "spark" in getattr(item, "fixturenames", ()) and not item.nodeid.startswith(WITH_SPARK)
    ]
    if astray:
        raise pytest.UsageError(f"a test with Spark that is not in {WITH_SPARK}: {astray[0]}")
    items.sort(key=lambda item: not item.nodeid.startswith(WITH_SPARK))


def pytest_runtest_setup(item: pytest.Item) -> None:
    if "PYTEST_XDIST_WORKER" in os.environ and not item.nodeid.startswith(WITH_SPARK):
        _give_way()


@cache
def _give_way() -> None:
    os.nice(10)


@pytest.fixture(scope="session", autouse=True)
def _no_other_spark() -> Iterator[None]:
    yield
    pyspark = sys.modules.get("pyspark")
    started = pyspark is not None and pyspark.SparkContext._active_spark_context is not None
    assert not started, "a test without the fixture `spark` has started Spark"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The test run's only Spark application; hand it to `steadyview.open(folder, spark=spark)`."""
    from pyspark.sql import SparkSession

    folder: Path = tmp_path_factory.mktemp("spark")
    # for Spark's own Python processes: what they import is what is tested here
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    builder = SparkSession.builder.appName("steadyview tests")
    for key, value in {**SPARK, "spark.sql.warehouse.dir": folder.as_uri()}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    yield session
    session.stop()
