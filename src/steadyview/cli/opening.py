"""Opening the warehouse of a project, and closing it whatever happens."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from steadyview.cli.tables import console, note

if TYPE_CHECKING:
    from steadyview.runtime.project import ProjectConfig
    from steadyview.runtime.warehouse import Warehouse

_LOGGERS_OF_ERRORS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


@contextmanager
def opened(project: Path) -> Iterator[Warehouse]:
    """The project's warehouse, closed at the end; what is made inside is private as it is."""
    # Imported late: `steadyview --help` and `init` should not wait for Spark's libraries.
    import steadyview
    from steadyview.modes import narrow_umask

    with (
        steadyview.open(project) as warehouse,
        narrow_umask(shared=warehouse.project.shared),
    ):
        warehouse.before_spark = _before_spark
        yield warehouse


def _before_spark() -> None:
    """Say why it takes some seconds now, to whoever watches."""
    if console(stderr=True).is_terminal:
        note("starting Spark ...")
    if not logging.getLogger("steadyview").isEnabledFor(logging.DEBUG):
        keep_errors_from_being_told_twice()


def tell_rights(project: ProjectConfig) -> None:
    """Set the rights of a warehouse that is open to others right, and say so."""
    from steadyview.modes import settle

    if changed := settle(project.warehouse, shared=project.shared):
        note(changed)


def keep_errors_from_being_told_twice() -> None:
    """PySpark logs every error that it raises as a page of JSON, Py4J an interrupted call.

    We report what they raise. A root logger with a handler keeps Py4J from printing by itself.
    """
    from pyspark.logger import PySparkLogger

    logging.getLogger().addHandler(logging.NullHandler())
    for name in _LOGGERS_OF_ERRORS:
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)
