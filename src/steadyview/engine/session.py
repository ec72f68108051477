"""The Spark session that carries the data.

Promise: the session handed out computes in UTC with ANSI arithmetic and keeps its settings and
temporary views to itself. A user's own session is never touched: work runs in a `newSession()` of
it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import SparkSession

from steadyview.engine.class_archive import class_archive, write_at_exit
from steadyview.errors import ConfigError
from steadyview.modes import current_umask

_WORK = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    # small plans everywhere: adaptive execution costs 20-30 % of a small batch
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": str(64 * 1024 * 1024),
    # Delta readers expect these encodings (Spark's defaults would write INT96 timestamps)
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    # a byte that changed on the disk is an error, not another value
    "parquet.page.verify-checksum.enabled": "true",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.crossJoin.enabled": "true",
    "spark.sql.caseSensitive": "false",
    # a text with ${env:NAME} in it would be given the environment, passwords included
    "spark.sql.variable.substitute": "false",
}
_MEANING = (
    "spark.sql.session.timeZone",
    "spark.sql.ansi.enabled",
    "spark.sql.caseSensitive",
    "spark.sql.variable.substitute",
    "spark.sql.parquet.outputTimestampType",
    "spark.sql.parquet.datetimeRebaseModeInWrite",
    "spark.sql.parquet.datetimeRebaseModeInRead",
    "spark.sql.parquet.inferTimestampNTZ.enabled",
)
"""Settings that decide what a view's rows are: states of two settings would not fit together."""
_START = {
    "spark.master": "local[*]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "4g",
    # what a sort or a hash map takes at least; by itself Spark makes that 64 MB here, and a small
    # statement has dozens of them in one task
    "spark.buffer.pageSize": "2m",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.catalogImplementation": "in-memory",
    # the compiled code of every view's statements stays; 100, the default, are a few views
    "spark.sql.codegen.cache.maxEntries": "5000",
    # what Spark remembers of statements that are over, for a page that nobody opens
    "spark.sql.ui.retainedExecutions": "20",
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "500",
    "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "1",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "true",
    "spark.hadoop.parquet.summary.metadata.level": "NONE",
}
# Spark takes an executor for dead after two silent minutes; the one in our own process was only
# asleep, with the laptop around it.
_LOCAL = {"spark.storage.blockManagerHeartbeatTimeoutMs": str(24 * 3600 * 1000)}


_JAVA = "spark.driver.defaultJavaOptions"
"""Spark puts these before spark.driver.extraJavaOptions, and of two words Java takes the last."""
# In a command most code runs a few times: the second compiler costs more than it brings. Without it
# Java would take 48 MB for compiled code, which are full after some batches.
_BRIEF = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"
# In a long run large batches need it, small ones do not: it comes in ten times later than usual.
_LASTING = (
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 "
    "-XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000"
)
# the Java that only finds out how to start the other one
_LAUNCHER = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def open_session(
    name: str,
    settings: Mapping[str, str],
    warehouse: Path,
    user: SparkSession | None = None,
    *,
    archive: bool = True,
    lasting: bool = False,
) -> SparkSession:
    """A session of our own: new, or beside the user's in the same application.

    `archive`: use an archive of Spark's classes, and write it if there is none.
    `lasting`: it is for a long run, not for a command.
    """
    for key in _MEANING:
        if settings.get(key, _WORK[key]) != _WORK[key]:
            raise ConfigError(
                f'"{key}" in [spark] cannot be "{settings[key]}"',
                detail=f"views are computed with {_WORK[key]}, whatever session reads them",
                hint=f'remove "{key}" from [spark]',
            )
    if user is not None:
        session = user.newSession()
    else:
        java = _LASTING if lasting else _BRIEF
        session = _start(name, settings, warehouse, java, archive=archive)
    cores = session.sparkContext.defaultParallelism
    for key, value in {**_WORK, "spark.sql.shuffle.partitions": str(cores)}.items():
        session.conf.set(key, value)
    for key, value in settings.items():
        if key.startswith("spark.sql.") and key not in _START and session.conf.isModifiable(key):
            session.conf.set(key, value)
    return session


def beside(session: SparkSession) -> SparkSession:
    """Another session of ours with the same settings and temporary views of its own."""
    other = session.newSession()
    for key, value in session.conf.getAll.items():
        ours = key in _WORK or (key.startswith("spark.sql.") and key not in _START)
        if ours and (key in _WORK or other.conf.isModifiable(key)):
            other.conf.set(key, value)
    return other


def ended(session: SparkSession) -> bool:
    """Whether Spark is gone, or on its way out: it may get the signal that was meant for us all."""
    try:
        return bool(session.sparkContext._jsc.sc().isStopped())
    except Exception:  # noqa: BLE001 - nobody there to answer
        return True


def _start(
    name: str, settings: Mapping[str, str], warehouse: Path, java: str, *, archive: bool
) -> SparkSession:
    local = settings.get("spark.master", _START["spark.master"]).startswith("local")
    configured = {
        **_START,
        **(_LOCAL if local else {}),
        "spark.app.name": f"steadyview {name}",
        "spark.sql.warehouse.dir": (warehouse / "spark-warehouse").as_uri(),
        # Hadoop's writers set modes themselves, whatever the umask of the process is
        "spark.hadoop.fs.permissions.umask-mode": f"{current_umask():03o}",
        **settings,
    }
    classes = class_archive(configured, Path(_find_spark_home())) if archive else None
    kept = classes.options if classes else ""
    words = (java, kept, _quiet(warehouse), settings.get(_JAVA, ""))
    configured[_JAVA] = " ".join(word for word in words if word)
    if local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", _LAUNCHER)
    builder = SparkSession.builder
    for key, value in configured.items():
        builder = builder.config(key, value)
    # Started in the main thread, Spark would take over Ctrl-C for good, and answer it by speaking
    # to the JVM on a connection that is in use.
    with ThreadPoolExecutor(max_workers=1) as starter:
        started = starter.submit(builder.getOrCreate).result()
    if classes is not None:
        write_at_exit(started.sparkContext._gateway, classes)
    # a session that already runs in this process belongs to somebody: stay beside it
    return started.newSession()


def _quiet(warehouse: Path) -> str:
    # the driver's JVM reads its log settings before any code of ours can speak to it
    quiet = Path(__file__).with_name("log4j2.properties").as_uri()
    level = "error" if logging.getLogger("steadyview").isEnabledFor(logging.DEBUG) else "fatal"
    logs = f"-Dlog4j2.configurationFile={quiet} -Dsteadyview.log={level}"
    return f'{logs} -Dderby.system.home="{warehouse.as_posix()}"'
