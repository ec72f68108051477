"""One run from an empty machine to results; whatever it started is stopped at its end."""

from __future__ import annotations

import shutil
import time
from contextlib import ExitStack
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks import measuring, report, tpch
from benchmarks.findings import findings, parts
from benchmarks.place import COPIES, Told, postgres
from benchmarks.report import Results
from benchmarks.site import Site, opened, template
from benchmarks.sizes import Sizes
from examples.embedded_postgres import EmbeddedPostgres
from steadyview.engine.session import open_session


def measured(sizes: Sizes, cache: Path, told: Told) -> Results:
    """Everything, in one process and one Spark session."""
    with ExitStack() as closing:
        return _Run(sizes, cache, told, closing).results()


class _Run:
    def __init__(self, sizes: Sizes, cache: Path, told: Told, closing: ExitStack) -> None:
        self._sizes, self._told, self._closing = sizes, told, closing
        self._started = time.monotonic()
        self._seconds: dict[str, float] = {}
        self._folder = cache / "run"
        shutil.rmtree(self._folder, ignore_errors=True)
        closing.callback(shutil.rmtree, self._folder, ignore_errors=True)
        told("PostgreSQL and Spark start")
        self._server = closing.enter_context(postgres(cache))
        self._spark = open_session(
            "bench", {"spark.master": "local[*]"}, self._folder, lasting=True
        )
        closing.callback(self._spark.stop)
        self._lap("start of PostgreSQL and Spark")

    def results(self) -> Results:
        """Load, warm up, measure."""
        sizes, told = self._sizes, self._told
        large, smaller = self._sites()
        measuring.warm_up(large, smaller, sizes, told)
        self._lap("warm-up")
        exported = measuring.export(large, sizes, told)
        self._lap("export for the full refresh by Spark")
        until = self._started + sizes.budget
        rounds = list(measuring.rounds(large, smaller, sizes, until, told))
        self._lap("rounds")
        applied = measuring.applies(large, sizes, told)
        self._lap("apply")
        found = findings(rounds, applied, exported, sizes)
        machine = report.machine(_postgres(self._server), _java(self._spark))
        return Results(sizes, len(rounds), found, parts(rounds), machine, self._seconds)

    def _lap(self, step: str) -> None:
        self._seconds[step] = time.monotonic() - self._started - sum(self._seconds.values())

    def _sites(self) -> tuple[Site, Site]:
        scales = (self._sizes.scale, self._sizes.smaller_scale)
        templates = [
            template(self._server, scale, self._folder, self._told, self._spark) for scale in scales
        ]
        self._lap("generate and load")
        large, smaller = (self._site(loaded) for loaded in templates)
        self._lap("copy databases, first states")
        return large, smaller

    def _site(self, loaded: tpch.Databases) -> Site:
        self._told(f"SF {loaded.scale:g}: databases copied")
        databases = tpch.copy_of(loaded, COPIES)
        place = self._folder / f"site-{loaded.scale:g}"
        site = self._closing.enter_context(opened(place, databases, self._spark))
        site.workload.prepare()
        self._told(f"SF {loaded.scale:g}: first states of the views")
        site.views.build()
        return site


def _postgres(server: EmbeddedPostgres) -> str:
    with server.connect() as connection:
        return connection.info.parameter_status("server_version") or "?"


def _java(spark: SparkSession) -> str:
    return str(spark.sparkContext._jvm.java.lang.System.getProperty("java.version"))
