"""Opening the warehouse of a project, and closing it whatever happens."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_LOGGERS_OF_ERRORS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


@contextmanager
def opened(project: Path) -> Iterator[Any]:
    """The project's warehouse, closed at the end."""
    # Imported late: `steadyview --help` and `init` should not wait for Spark's libraries.
    import steadyview

    with steadyview.open(project) as warehouse:
        warehouse.before_spark = keep_errors_from_being_told_twice
        yield warehouse


def keep_errors_from_being_told_twice() -> None:
    """PySpark logs every error that it raises as a page of JSON, Py4J an interrupted call.

    We report what they raise. A root logger with a handler keeps Py4J from printing by itself.
    """
    from pyspark.logger import PySparkLogger

    logging.getLogger().addHandler(logging.NullHandler())
    for name in _LOGGERS_OF_ERRORS:
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)
