"""The parts of an open warehouse, handed around together."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from itertools import count
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from steadyview.catalog import Catalog
from steadyview.runtime.clock import ClockWatch, CountingClock
from steadyview.runtime.project import ProjectConfig
from steadyview.sources.contract import Owner, Source
from steadyview.sources.registry import open_source
from steadyview.update_log import UpdateLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOK = 3
"""Seconds after which `check` and `explain` go on without a source that does not answer."""
READERS = 24 * 3600.0
"""Seconds after which a folder of a reader is taken for one that a killed reader left."""
_numbers = count(1)


class Parts:
    """What a warehouse consists of. Spark starts, and sources open, when first asked for.

    Spark is started by one thread, and the others wait for it. Sources are opened before there are
    other threads, and reopened by the thread of the loop while their captures are ended.
    """

    def __init__(
        self,
        project: ProjectConfig,
        catalog: Catalog,
        clock: CountingClock,
        start: Callable[[], SparkSession],
    ) -> None:
        self.project = project
        self.catalog = catalog
        self.clock = clock
        self.watch = ClockWatch(clock, project.clock_limit)
        catalog.commits.trust = self.watch.check
        self.log = UpdateLog(project.warehouse / "log")
        self._start = start
        self._spark: SparkSession | None = None
        self._starting = Lock()

    @property
    def spark(self) -> SparkSession:
        """The session that carries the data."""
        with self._starting:
            if self._spark is None:
                self._spark = self._start()
            return self._spark

    @cached_property
    def sources(self) -> dict[str, Source]:
        """The sources of the project file; ConfigError if one lacks a setting's value."""
        return {name: self._opened(name) for name in self.project.sources}

    def reopen(self, name: str) -> Source:
        """The source as its owner has it now, in the place of the one opened before."""
        self.sources[name].close()
        self.sources[name] = self._opened(name)
        return self.sources[name]

    def opened_briefly(self, name: str) -> Source:
        """The source for a look: one that does not answer soon is not waited for. Close it."""
        return self._opened(name, LOOK)

    def opened_for(self, name: str, table: str) -> Source:
        """The source as if it had this one table. Close it."""
        return self._opened(name, tables=[table])

    def _opened(self, name: str, patience: int | None = None, **other: Any) -> Source:
        if name in self.project.unready:
            raise self.project.unready[name]
        project, owner = self.project, owner_of(self.catalog, name)
        settings = {**project.sources[name], **other}
        return open_source(name, settings, project.root, owner, patience)

    def close(self) -> None:
        """Let go of the sources' connections, and of what Spark keeps for us."""
        for source in self.__dict__.get("sources", {}).values():
            source.close()
        if self._spark is not None:
            # imported late: there may be no Spark at all
            from steadyview.engine.prepared import forget
            from steadyview.engine.session import ended

            if not ended(self._spark):
                forget(self._spark)

    @property
    def root(self) -> Path:
        """The warehouse's folder."""
        return self.project.warehouse

    def clear_work(self) -> None:
        """Remove what killed keepers left; readers of other processes keep theirs for a day."""
        long_ago = time.time() - READERS
        for folder in (self.root / "work").glob("*-*"):
            with suppress(OSError):
                ours = folder.name.startswith(("batch-", "table-"))
                if ours or folder.stat().st_mtime < long_ago:
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


def owner_of(catalog: Catalog, source: str) -> Owner:
    """The warehouse as the owner of what is set up at a source."""
    proofs: Mapping[str, str] = {s.name: s.proof for s in catalog.sources.states()}
    return Owner(catalog.identity(), proofs.get(source, ""))
