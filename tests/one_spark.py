"""One Spark application for all processes of a test run.

The process that first needs it starts it, the others attach to it; it ends when the last of them
has no more use for it. (Starting one takes seconds, and each would compile the same code again.)
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

SETTINGS = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",
    # most statements run once or twice: the second compiler would never earn its time back (and
    # without it Java takes less room for compiled code than Spark needs)
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
}


@contextmanager
def one_spark(folder: Path) -> Iterator[SparkSession]:
    """A session in the application of all who name this folder."""
    folder.mkdir(exist_ok=True)
    address = folder / "gateway.json"
    with (folder / "users").open("w") as users:
        with _alone(folder):
            ours = not address.exists()
            session = _started(folder) if ours else attached(json.loads(address.read_text()))
            address.write_text(json.dumps(gateway(session)))
            fcntl.flock(users, fcntl.LOCK_SH)
        yield session
        if ours:
            with _alone(folder):
                # waits for those who use it still
                fcntl.flock(users, fcntl.LOCK_EX)
                address.unlink()
                session.stop()
        SparkContext._active_spark_context = None


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    with (folder / "starting").open("w") as starting:
        fcntl.flock(starting, fcntl.LOCK_EX)
        yield


def _started(folder: Path) -> SparkSession:
    builder = SparkSession.builder.appName("steadyview tests")
    for key, value in {**SETTINGS, "spark.sql.warehouse.dir": folder.as_uri()}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def gateway(spark: SparkSession) -> dict[str, str]:
    """The variables by which another process finds the application."""
    found = spark.sparkContext._gateway.gateway_parameters
    return {"PYSPARK_GATEWAY_PORT": str(found.port), "PYSPARK_GATEWAY_SECRET": found.auth_token}


def attached(variables: dict[str, str]) -> SparkSession:
    """A session in an application that runs already. No process started from here will see it."""
    with mock.patch.dict(os.environ, variables):
        found: Any = launch_gateway()
    running = found.jvm.org.apache.spark.SparkContext.getOrCreate()
    java = found.jvm.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(running)
    conf = SparkConf(_jvm=found.jvm, _jconf=java.getConf())
    return SparkSession(SparkContext(conf=conf, gateway=found, jsc=java))
