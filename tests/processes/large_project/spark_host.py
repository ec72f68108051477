"""A Spark application that others attach to, until nobody holds its standard input any more.

    python -m tests.processes.large_project.spark_host      its address on stdout, as JSON

A life that attaches to it starts in a second, and when it is killed its Spark goes on for a while
with what it was told, as one on a cluster does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.conftest import SPARK
from tests.crash.keepers import ROOT


@contextmanager
def spark_host() -> Iterator[dict[str, str]]:
    """The environment of processes that are to attach to it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.processes.large_project.spark_host"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
    )
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline())
    finally:
        process.communicate()


def main() -> None:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("steadyview lives")
    for key, value in SPARK.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    found = session.sparkContext._gateway.gateway_parameters
    address = {"PYSPARK_GATEWAY_PORT": str(found.port), "PYSPARK_GATEWAY_SECRET": found.auth_token}
    sys.stdout.write(f"{json.dumps(address)}\n")
    sys.stdout.flush()
    sys.stdin.read()
    session.stop()


if __name__ == "__main__":
    main()
