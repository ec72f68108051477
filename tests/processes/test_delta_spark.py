"""Views read by others, as the README shows: plain Spark with delta-spark, DuckDB, pandas.

The views are kept in that very Spark session, and have odd names of columns.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from steadyview.cli.app import app

README = (Path(__file__).parents[2] / "README.md").read_text()
PROGRAM = """
import json, os, sys
sys.path.insert(0, "")
snippets = json.load(open("snippets.json"))
exec(snippets["builder"])
print("started", flush=True)
import steadyview
with steadyview.open("shop", spark=spark) as wh:
    wh.run_once()
    cn = wh.status().cn
    views = {v: wh.view(v).read() for v in ("revenue_by_region", "odd")}
    tables = {v: spark.read.format("delta").load(f"shop/warehouse/views/{v}") for v in views}
    pairs = [(views[v], tables[v]) for v in views]
    found = [[sorted(map(str, rows.collect())) for rows in pair] for pair in pairs]
    found.append([views["odd"].columns, tables["odd"].columns])
    row = spark.sql(f"DESCRIBE HISTORY delta.`{os.getcwd()}/shop/warehouse/views/odd`").first()
    found.append([cn, json.loads(row.userMetadata)["cn"]])
exec(snippets["plain"])
exec(snippets["source"])
exec(snippets["duckdb"])
print(eval(snippets["pandas"]))
print(json.dumps(found))
"""
ODD = """SELECT region AS `a b`, region AS `x.y`, COUNT(*) AS `COUNT(*)`,
CAST(NULL AS TIMESTAMP_NTZ) AS `t,;{}=` FROM crm.customers GROUP BY region"""


def snippets() -> dict[str, str]:
    """The README's, those with Spark without their first lines, which start it."""
    found = re.findall(r"^```python\n(.*?)^```", README, re.S | re.M)
    (plain,) = [s for s in found if 'format("delta")' in s]
    (duckdb,) = [s for s in found if "import duckdb" in s]
    (pandas,) = [s for s in found if "to_pandas" in s]
    (source,) = [s for s in found if 'format("steadyview")' in s]
    builder, _, read = plain.partition("spark.read")
    # of a time before the warehouse was made
    source = source.replace('"2026-11-16T10:00:00Z"', '"0"')
    imports, _, call = pandas.rpartition("\n\n")
    return {
        "builder": builder,
        "plain": f"spark.read{read}",
        "duckdb": f"{imports}\n{duckdb}",
        "pandas": call.strip(),
        "source": source,
    }


@pytest.mark.slow
def test_views_are_read_by_others_as_the_readme_shows(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    CliRunner().invoke(app, ["init", str(folder)])
    (folder / "views" / "odd.sql").write_text(ODD)
    (tmp_path / "snippets.json").write_text(json.dumps(snippets()))
    (tmp_path / "spark-defaults.conf").write_text(
        "spark.master local[1]\nspark.ui.enabled false\nspark.sql.session.timeZone UTC\n"
        "spark.driver.bindAddress 127.0.0.1\nspark.driver.host 127.0.0.1\n"
        "spark.driver.extraJavaOptions -XX:TieredStopAtLevel=1 -XX:+UseSerialGC\n"
        "spark.ui.showConsoleProgress false\nspark.databricks.delta.snapshotPartitions 1\n"
        "spark.sql.shuffle.partitions 1\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_CONF_DIR": str(tmp_path),
        },
    )
    if "started" not in done.stdout and "unresolved dependency" in done.stderr.lower():
        pytest.skip("Delta's jars cannot be had here (no Maven repository within reach)")
    assert done.returncode == 0, done.stderr
    *shown, last = done.stdout.splitlines()
    for view, table in json.loads(last):
        assert table == view
    # plain Spark, the newest state and a past one, DuckDB, pandas
    assert sum("north" in line and "7770" in line for line in shown) == 5, done.stdout
