"""A session as the product opens it, inside the test run's only Spark application."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def session(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    from steadyview.engine.session import open_session

    return open_session("test", {}, tmp_path_factory.mktemp("warehouse"), spark)
