"""A command, and what it took with everything it started: seconds, CPU-seconds, whether Java ran.

    python -m benchmarks.accounted COMMAND ...

Prints one line of JSON. Spark's Java outlives the command that started it by a moment, and nobody
waits for it: this process adopts such orphans (Linux) and counts what they used.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

_ADOPT_ORPHANS = 36
"""PR_SET_CHILD_SUBREAPER of prctl(2)."""
_LOOK = 0.05
"""Seconds between two looks for Java; its start alone takes ten times as long."""


@dataclass(frozen=True)
class Account:
    """What a command took."""

    code: int
    seconds: float
    """Until the command itself had ended."""
    cpu: float
    """CPU-seconds of it and of all that it started."""
    java: bool
    """Whether a Java was seen among them."""


def used(pid: int | None = None) -> float:
    """CPU-seconds so far of a process, by default this one, and of what it has started: Java."""
    whole = psutil.Process(pid)
    times = [p.cpu_times() for p in (whole, *whole.children(recursive=True))]
    return sum(t.user + t.system for t in times)


def available() -> bool:
    """Whether orphans can be adopted here."""
    return sys.platform == "linux"


def account(command: list[str], folder: Path, environment: dict[str, str]) -> Account:
    """Run the command in a process that does nothing else but count."""
    counting = [sys.executable, "-m", "benchmarks.accounted", *command]
    here = str(Path(__file__).resolve().parent.parent)
    # the one who counts finds this package; the command finds its own version
    env = {**environment, "ACCOUNTED_PATH": environment["PYTHONPATH"], "PYTHONPATH": here}
    found = subprocess.run(
        counting, cwd=folder, env=env, stdout=subprocess.PIPE, text=True, check=True
    )
    return Account(**json.loads(found.stdout.splitlines()[-1]))


def main() -> None:
    """Run what the arguments say."""
    if ctypes.CDLL(None).prctl(_ADOPT_ORPHANS, 1, 0, 0, 0):
        sys.exit("orphans cannot be adopted here")
    environment = {**os.environ, "PYTHONPATH": os.environ["ACCOUNTED_PATH"]}
    print(json.dumps(asdict(_counted(sys.argv[1:], environment))))


def _counted(command: list[str], environment: dict[str, str]) -> Account:
    seen, over = threading.Event(), threading.Event()
    looking = threading.Thread(target=_look, args=(seen, over))
    started = time.perf_counter()
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    looking.start()
    code, seconds, cpu = 0, 0.0, 0.0
    while True:
        try:
            pid, status, used = os.wait4(-1, 0)
        except ChildProcessError:
            break
        cpu += used.ru_utime + used.ru_stime
        if pid == process.pid:
            seconds, code = time.perf_counter() - started, os.waitstatus_to_exitcode(status)
    over.set()
    looking.join()
    process.returncode = code
    return Account(code, seconds, cpu, seen.is_set())


def _look(seen: threading.Event, over: threading.Event) -> None:
    while not (seen.is_set() or over.wait(_LOOK)):
        for child in psutil.Process().children(recursive=True):
            try:
                if child.name() == "java":
                    seen.set()
            except psutil.NoSuchProcess:
                continue


if __name__ == "__main__":
    main()
