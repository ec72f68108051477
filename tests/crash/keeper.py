"""A process that keeps a warehouse and does as it is told, until it is done or killed.

    python -m tests.crash.keeper PROJECT        commands on stdin, answers on stdout, JSON lines

With PYSPARK_GATEWAY_PORT in the environment it uses the Spark of the test run (a killed keeper then
costs no Spark start); otherwise a Spark of its own.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from copy import copy
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import steadyview
from steadyview.crash_points import VARIABLE
from steadyview.delta import compaction
from steadyview.errors import SteadyviewError
from steadyview.runtime import building, housekeeping, pieces
from steadyview.warehouse import apply

# in every life bases are rolled
apply.RESIDUAL_FILES = 0


def attached() -> Any:
    """A session in the Spark application that runs already, None if there is none."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return None
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    gateway = launch_gateway()
    running = gateway.jvm.org.apache.spark.SparkContext.getOrCreate()
    java = gateway.jvm.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(running)
    conf = SparkConf(_jvm=gateway.jvm, _jconf=java.getConf())
    return SparkSession(SparkContext(conf=conf, gateway=gateway, jsc=java))


class Keeper:
    """One open warehouse; a method per command."""

    def __init__(self, folder: str) -> None:
        self._warehouse = steadyview.open(folder, spark=attached())

    def once(
        self, crash_at: str | None = None, piece: int | None = None, span: int | None = None
    ) -> dict[str, Any]:
        """`piece`: a backlog is cut into pieces of about so many log rows; `span`: relations too.

        Those are then read in spans of about so many rows for a first state.
        """
        os.environ[VARIABLE] = crash_at or ""
        building.SPAN = span or building.SPAN
        if piece is not None:
            pieces.SIZE.rows, pieces.WARM, pieces.QUICK = piece, 0, -1.0
        return self._warehouse.run_once().to_dict()

    def tidy(self, crash_at: str | None = None, *, logs_only: bool = False) -> None:
        """As if two files were many, and what lies behind went at once."""
        os.environ[VARIABLE] = crash_at or ""
        compaction.MANY_FILES = 1
        housekeeping.READERS = timedelta(0)
        parts = self._warehouse._parts
        parts = copy(parts)
        parts.project = replace(parts.project, retention=timedelta(0))
        with self._warehouse._lease("tidy"):
            tidying = housekeeping.Housekeeping(parts)
            if logs_only:
                tidying.logs()
            else:
                tidying.now()

    def refresh(
        self, views: list[str], to: int | None = None, crash_at: str | None = None
    ) -> dict[str, Any]:
        """Views to one cn; the answer's time is left out."""
        os.environ[VARIABLE] = crash_at or ""
        found = self._warehouse.refresh(views, to)
        return {"cn": found.cn, "views": list(found.views), "along": list(found.along)}

    def compress(
        self, view: str, until: int | None = None, crash_at: str | None = None
    ) -> dict[str, Any]:
        os.environ[VARIABLE] = crash_at or ""
        return self._warehouse.compress(view, until).to_dict()

    def run(self) -> None:
        """Until it is killed; answers when it is at work."""
        begun, never = threading.Event(), threading.Event()

        def work() -> None:
            try:
                self._warehouse.run(never, lambda _: begun.set())
            finally:
                begun.set()

        threading.Thread(target=work, daemon=True).start()
        begun.wait()

    def changed(self, view: str) -> list[int]:
        """At which cns the view changed, the last ones."""
        return [commit.cn for commit in self._warehouse.view(view).history(1_000)]

    def rename(self, old: str, new: str, crash_at: str | None = None) -> list[str]:
        os.environ[VARIABLE] = crash_at or ""
        return [place.path for place in self._warehouse.rename(old, new)]

    def drop(self, view: str, crash_at: str | None = None) -> list[str]:
        os.environ[VARIABLE] = crash_at or ""
        return self._warehouse.drop(view, cascade=True)

    def rows(self, view: str, at: int | None = None) -> list[list[Any]]:
        return [list(row) for row in self._warehouse.view(view).read(at).collect()]

    def verify(
        self, at: int | None = None, views: list[str] | None = None, *, nodes: bool = False
    ) -> list[dict[str, Any]]:
        return [v.to_dict() for v in self._warehouse.verify(views, at, nodes=nodes)]

    def status(self) -> dict[str, Any]:
        return self._warehouse.status().to_dict()


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    keeper = Keeper(sys.argv[1])
    for line in sys.stdin:
        command = json.loads(line)
        try:
            answer = {"done": getattr(keeper, command.pop("do"))(**command)}
        except SteadyviewError as error:
            answer = {"error": str(error), "kind": type(error).__name__}
        print(json.dumps(answer, default=_plain), file=answers, flush=True)


def _plain(value: object) -> object:
    return {"decimal": str(value)} if isinstance(value, Decimal) else str(value)


if __name__ == "__main__":
    main()
    # not a crash, but no reason to stop the Spark that others use
    os._exit(0)
