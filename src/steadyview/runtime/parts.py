"""The parts of an open warehouse, handed around together."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from pyspark.sql import SparkSession

from steadyview.catalog import Catalog
from steadyview.catalog.clock import Clock
from steadyview.runtime.project import Project
from steadyview.sources.contract import Source
from steadyview.update_log import UpdateLog

_numbers = count(1)


@dataclass(frozen=True)
class Parts:
    """What a warehouse consists of. Holds no state of its own."""

    project: Project
    spark: SparkSession
    catalog: Catalog
    log: UpdateLog
    sources: dict[str, Source]
    clock: Clock

    @property
    def root(self) -> Path:
        """The warehouse's folder."""
        return self.project.warehouse

    def clear_work(self) -> None:
        """Remove what killed batches left; readers of other processes keep their folders."""
        for folder in (self.root / "work").glob("batch-*"):
            shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def work_folder(self, label: str) -> Iterator[Path]:
        """A folder for answers and tagged logs, gone afterwards."""
        folder = self.root / "work" / f"{label}-{self.clock.now_us()}-{next(_numbers)}"
        folder.mkdir(parents=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
