"""A Spark application that follows a view's changes until it has caught up, or is killed.

    python stream_driver.py PROJECT VIEW FOLDER BATCH

Keeps each batch as FOLDER/out/<number>.json, and kills itself once it has kept batch BATCH.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from tests.conftest import SPARK


def main(project: str, view: str, folder: Path, deadly: int) -> None:
    out = folder / "out"
    out.mkdir(exist_ok=True)

    def keep(batch: DataFrame, number: int) -> None:
        rows = sorted([*row[:-2], row._count, row._cn] for row in batch.drop("_time").collect())
        made = out / f"{number}.new"
        made.write_text(json.dumps([list(map(str, row)) for row in rows]))
        made.rename(out / f"{number}.json")
        if number == deadly:
            os.kill(os.getpid(), signal.SIGKILL)

    builder = SparkSession.builder
    for key, value in {**SPARK, "spark.master": "local[1]"}.items():
        builder = builder.config(key, value)
    stream = builder.getOrCreate().readStream.format("steadyview").option("changes", True)
    query = stream.option("project", project).load(view).writeStream.foreachBatch(keep)
    started = query.option("checkpointLocation", str(folder / "checkpoint"))
    started.trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
