"""The Spark job of the view managers: one plain `mapInArrow` over a row per manager.

No barrier stage: there, one task's death ends the job. Where Spark tries a task again
(`local[n,f]`, a cluster) a killed manager alone starts again; otherwise the job does, at once. It
ends by itself every few minutes and whenever what is to be kept changes: a new generation of leases
is handed out, and the managers of the old one leave at their next look.
Managers stay in their slots, so that one slot at least is left for the batches.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Sequence

from pyspark.sql import SparkSession

from steadyview.engine.answers import this_python
from steadyview.engine.session import beside, ended
from steadyview.errors import ConfigError, SteadyviewError
from steadyview.runtime.managers.lanes import LogServed
from steadyview.runtime.managers.managing import Managers, assigned, managing
from steadyview.runtime.parts import Parts

MANAGERS = 2
AGAIN = 0.2
LONGEST = 10.0
"""Seconds until a job that failed is started again: at first, and at most."""
ENDING = 5.0
"""Seconds for managers to leave, until the job is cancelled."""
_LOCAL = re.compile(r"local(?:\[(\d+|\*)(?:\s*,\s*\d+)?\])?")


class ManagerJob:
    """Keeps the managers at work by a thread of its own, while there is anything for them."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.error: SteadyviewError | None = None
        """Why the job ended last, if not by itself."""
        self._lock = threading.Condition()
        self._wanted: dict[str, Sequence[LogServed]] = {}
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._spark: SparkSession | None = None

    def keep(self, store: str, served: Sequence[LogServed]) -> None:
        """From now on these views of the store, and those of others as before."""
        with self._lock:
            before = [one.records for one in self._wanted.get(store, ())]
            if before == [one.records for one in served]:
                return
            self._wanted[store] = list(served)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="managers", daemon=True)
                self._thread.start()
            self._end_generation()

    def at_work(self) -> bool:
        """Whether there is anything for them."""
        return any(self._wanted.values())

    def stop(self) -> None:
        """Returns when no manager of ours is at work."""
        with self._lock:
            self._stopping = True
            self._end_generation()
        if self._thread is None:
            return
        self._thread.join(ENDING)
        if self._thread.is_alive() and self._spark is not None and not ended(self._spark):
            self._spark.sparkContext.cancelJobGroup(self._group)
            self._thread.join()

    def _end_generation(self) -> None:
        self._parts.catalog.leases.hand_out({})
        self._lock.notify_all()

    def _run(self) -> None:
        wait = AGAIN
        while True:
            with self._lock:
                self._lock.wait_for(lambda: self._stopping or any(self._wanted.values()))
                if self._stopping:
                    return
                served = [one for kept in self._wanted.values() for one in kept]
            try:
                self._generation(served)
                wait, self.error = AGAIN, None
            except Exception as error:  # noqa: BLE001 - a killed task, a fault: begun again
                self.error = _told(error)
                with self._lock:
                    self._lock.wait_for(lambda: self._stopping, wait)
                wait = min(2 * wait, LONGEST)

    def _generation(self, served: Sequence[LogServed]) -> None:
        if self._spark is None:
            self._spark = beside(self._parts.spark)
        spark = self._spark
        count = min(MANAGERS, slots(spark) - 1)
        with self._lock:
            if self._stopping or served != [s for kept in self._wanted.values() for s in kept]:
                return
            number = self._parts.catalog.leases.hand_out(assigned(served, count))
        managers = Managers(self._parts.root.absolute(), number, served)
        spark.sparkContext.setJobGroup(self._group, "view managers", interruptOnCancel=True)
        with this_python(spark):
            rows = spark.range(0, count, 1, count).mapInArrow(managing(managers), "nothing INT")
        rows.collect()

    @property
    def _group(self) -> str:
        return f"steadyview managers {self._parts.catalog.identity()}"


def _told(error: Exception) -> SteadyviewError:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    wrong = next((line for line in lines if re.match(r"\w*(Error|Exception)\b", line)), lines[0])
    hint = "they are started again; records go on where they are registered"
    return SteadyviewError("the view managers came to an end", detail=wrong[:300], hint=hint)


def check_slots(parts: Parts) -> None:
    """ConfigError where managers would take the only slot that Spark has."""
    if slots(parts.spark) < 2:  # noqa: PLR2004 - one for managers, one for everything else
        raise ConfigError(
            "Spark has one slot, and view managers need one of their own",
            hint="leave spark.master out of [spark], or give it two slots: local[2]",
        )


def slots(spark: SparkSession) -> int:
    """How many tasks run at once, as far as the master says."""
    found = _LOCAL.fullmatch(spark.sparkContext.master or "")
    if found is None:
        return MANAGERS + 1
    if found[1] == "*":
        return os.cpu_count() or 1
    return int(found[1] or 1)


def local_master(cores: int) -> dict[str, str]:
    """Settings that leave the batches all cores: managers wait most of their time."""
    return {
        "spark.master": f"local[{cores + MANAGERS},4]",
        "spark.default.parallelism": str(cores),
    }
