"""Incrementally maintained materialized views for Apache Spark over several live databases.

A first look, in the folder of a project:

    import steadyview

    with steadyview.open("shop") as wh:
        wh.run_once()
        wh.view("revenue_by_region").read().show()
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from steadyview.errors import DefiniteError, SteadyviewError, TransientError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from steadyview.runtime.warehouse import Warehouse

__version__ = "0.1.0"
__all__ = ["DefiniteError", "SteadyviewError", "TransientError", "__version__", "open"]


def open(project: str | Path = ".", spark: SparkSession | None = None) -> Warehouse:
    """The warehouse of the project in a folder.

    With a SparkSession of your own, work runs in a `newSession()` of it; yours stays untouched.
    """
    # imported late: looking at the package should not load Spark
    from steadyview.runtime.warehouse import Warehouse

    return Warehouse(project, spark)
