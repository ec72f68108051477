"""Starting, asking and killing keepers (see keeper.py)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parents[2]


class Killed(Exception):
    """The keeper died by SIGKILL instead of answering."""


class Failed(Exception):
    """The keeper answered with an error of the product: (kind, text)."""


class Keeper:
    """The test's end of one keeper process, the leader of a process group of its own."""

    def __init__(self, folder: Path, spark: Any = None) -> None:
        self._errors = folder / "keeper.err"
        with self._errors.open("a") as errors:
            self.process = self._started(folder, spark, errors)

    def _started(self, folder: Path, spark: Any, errors: IO[str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.crash.keeper", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=ROOT,
            env={**os.environ, **_gateway(spark), "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
            process_group=0,
        )

    def ask(self, do: str, **how: Any) -> Any:
        """The answer; Killed if it was killed meanwhile, Failed if the product raised an error."""
        self.tell(do, **how)
        return self.answer()

    def tell(self, do: str, **how: Any) -> None:
        """Give a command without waiting for the answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"do": do, **how}) + "\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            code = self.process.wait()
            if code == -signal.SIGKILL:
                raise Killed
            raise AssertionError(f"keeper ended with {code}:\n{self._errors.read_text()[-3000:]}")
        answer = json.loads(line, object_hook=_decimal)
        if "error" in answer:
            raise Failed(answer["kind"], answer["error"])
        return answer["done"]

    def kill(self) -> None:
        """kill -9, with everything it started."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.end()

    def end(self) -> None:
        """Wait until it has ended: it does so when there is nothing more to read."""
        self.process.communicate()


def _gateway(spark: Any) -> Mapping[str, str]:
    """The environment of a process that is to attach to it, if that is not what was given."""
    if spark is None or isinstance(spark, Mapping):
        return spark or {}
    found = spark.sparkContext._gateway.gateway_parameters
    return {"PYSPARK_GATEWAY_PORT": str(found.port), "PYSPARK_GATEWAY_SECRET": found.auth_token}


def _decimal(found: dict[str, Any]) -> Any:
    return Decimal(found["decimal"]) if found.keys() == {"decimal"} else found
