"""Processes of `steadyview` that end by SIGKILL: at a crash point, or when somebody says so."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from steadyview.crash_points import VARIABLE
from tests.crash.keepers import ROOT

PATIENCE = 120.0
"""Seconds within which a life comes where it is to end."""
COMMAND = [sys.executable, "-m", "tests.processes.large_project.eager_run"]


class Lives:
    """The lives of one project, one after the other; what they say is in `log`.

    `spark` is the environment by which they find the Spark that runs (`spark_host`).
    """

    def __init__(self, project: Path, spark: Mapping[str, str]) -> None:
        self._project = project
        self._spark = spark
        self.log = project.parent / "lives.log"
        self._began = time.monotonic()
        self.ended: list[str] = []
        """Where each life so far was ended."""
        self.missed: list[str] = []
        """Where lives were to end that did not come there."""

    def killed_at(self, point: str, *command: str) -> None:
        """A life that ends at this crash point, or is ended when it does not come there."""
        last = time.monotonic() + PATIENCE
        code = self._live(command or ("run",), lambda: time.monotonic() > last, point)
        if code is None:
            self.missed.append(point)
        assert code in (None, -signal.SIGKILL), f"{point}: ended with {code}:\n{self._said()}"
        self._tell(point if code else f"missed {point}")

    def killed_when(self, what: str, ends: Callable[[], bool]) -> None:
        """A life of `run` that is ended as soon as this is so."""
        code = self._live(("run",), ends)
        assert code is None, f"{what}: ended with {code}:\n{self._said()}"
        self._tell(what)

    def killed_after(self, seconds: float, *, alone: bool) -> None:
        """A life of `run` of so many seconds; alone: it has a Spark of its own, killed with it."""
        end, spark = time.monotonic() + seconds, self._spark
        self._spark = {} if alone else spark
        self.killed_when(f"after {seconds:.1f} s", lambda: time.monotonic() > end)
        self._spark = spark

    def _live(
        self, command: tuple[str, ...], ends: Callable[[], bool], crash_at: str = ""
    ) -> int | None:
        """How it ended by itself; None: it was ended. All that it started is gone with it."""
        path = f"{ROOT / 'src'}:{ROOT}"
        with self.log.open("a") as log:
            process = subprocess.Popen(
                [*COMMAND, *command, "--project", str(self._project)],
                stdout=subprocess.DEVNULL,
                stderr=log,
                cwd=ROOT,
                env={**os.environ, **self._spark, "PYTHONPATH": path, VARIABLE: crash_at},
                process_group=0,
            )
        try:
            return _code(process, ends)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _tell(self, ended: str) -> None:
        self.ended.append(ended)
        now = time.monotonic() - self._began
        sys.stderr.write(f"{now:.0f} s: life {len(self.ended)} ended: {ended}\n")

    def _said(self) -> str:
        return self.log.read_text()[-3000:]


def _code(process: subprocess.Popen[bytes], ends: Callable[[], bool]) -> int | None:
    """The code with which the process ends before that; None if it does not."""
    while not ends():
        with suppress(subprocess.TimeoutExpired):
            return process.wait(0.1)
    return None
