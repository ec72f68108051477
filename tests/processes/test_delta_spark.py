"""A session with Delta's own connector: views are kept in it, and Delta reads their bases."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from steadyview.cli.app import app

PROGRAM = """
import json, sys
from delta import configure_spark_with_delta_pip
from pyspark.sql import SparkSession
import steadyview
from tests.system.maintained import stored

builder = (SparkSession.builder.master("local[1]")
    .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    .config("spark.ui.enabled", "false").config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.host", "127.0.0.1").config("spark.sql.session.timeZone", "UTC")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"))
spark = configure_spark_with_delta_pip(builder).getOrCreate()
print("started", flush=True)
with steadyview.open(sys.argv[1], spark=spark) as wh:
    wh.run_once()
    view = wh.view("revenue_by_region").read()
    path = str(stored(wh, "revenue_by_region").base.path)
    base = spark.read.format("delta").load(path).select(view.columns)
    print(json.dumps([sorted(map(list, rows.collect())) for rows in (view, base)]))
"""


@pytest.mark.slow
def test_a_base_can_be_read_by_deltas_own_spark_reader(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    CliRunner().invoke(app, ["init", str(folder)])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    if "started" not in done.stdout and "unresolved dependency" in done.stderr.lower():
        pytest.skip("Delta's jars cannot be had here (no Maven repository within reach)")
    assert done.returncode == 0, done.stderr
    view, base = json.loads(done.stdout.splitlines()[-1])
    assert base == view
    assert [row[0] for row in view] == ["north", "south"]
