"""A process with a Spark of its own: one small job, its answer, and how Java was started."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main() -> None:
    """Arguments: a folder for the warehouse, Spark settings as JSON, and whether it is to last."""
    from steadyview.engine import class_archive
    from steadyview.engine.session import open_session

    # a small job is enough here
    class_archive.LEAST = 1_000
    folder, settings = Path(sys.argv[1]), json.loads(sys.argv[2])
    spark = open_session("test", settings, folder, lasting=sys.argv[3] == "lasting")
    total = spark.sql("SELECT SUM(id) AS n FROM RANGE(10)").toArrow()["n"].to_pylist()
    jvm = spark._jvm
    beans = jvm.java.lang.management.ManagementFactory
    words = list(beans.getRuntimeMXBean().getInputArguments())
    sys.stdout.write(json.dumps({"total": total, "java": words}) + "\n")


if __name__ == "__main__":
    main()
