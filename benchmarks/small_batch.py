"""One view over three relations, 50 changes a batch, warm: this version and the one before plans.

    python -m benchmarks.small_batch [--smoke]

Both versions keep the same view over the same two databases, each in a process of its own with its
own replication slots and warehouse. A round commits 50 changes, waits until both have captured
them, and lets one refresh after the other, in turns first. In the end both must show the same rows.
Without git's history only this version's seconds are given.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import tpch
from benchmarks.accounted import used
from benchmarks.findings import CPU, RATIO, SECONDS, Finding
from benchmarks.place import COPIES, HERE, Told, alone, postgres, teller
from benchmarks.report import findings_table
from benchmarks.site import AGGREGATE, template, write_project
from benchmarks.versions import BEFORE, NOW, Version, before
from benchmarks.workload import Workload

CHANGES = 50
MOST = 0.45
"""Of the seconds that the version before took."""


@dataclass(frozen=True)
class _Sizes:
    scale: float
    warm_ups: int
    rounds: int


FULL, SMOKE = _Sizes(0.1, 20, 15), _Sizes(0.01, 0, 1)


@dataclass
class Kept:
    """A version at work; what its batches took."""

    version: Version
    process: subprocess.Popen[str]
    refresh: list[float] = field(default_factory=list)
    apply: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def asked(self, word: str) -> dict[str, Any]:
        """Tell it to do something; its answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()
        return self.answer()

    def answer(self) -> dict[str, Any]:
        """Its next line."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.version.name} ended with {self.process.wait()}")
        return json.loads(line)  # type: ignore[no-any-return]

    def batch(self) -> None:
        """Refresh, and remember what it took."""
        before = used(self.process.pid)
        found = self.asked("refresh")
        self.cpu.append(used(self.process.pid) - before)
        self.refresh.append(found["refresh"])
        self.apply.append(found["apply"])

    def forget(self) -> None:
        """What was remembered of the warm-up."""
        for each in (self.refresh, self.apply, self.cpu):
            each.clear()


@contextmanager
def keeping(version: Version, project: Path) -> Iterator[Kept]:
    """The version keeps the project's views; it ends with the block."""
    command = [sys.executable, "-P", str(HERE / "keeper.py"), str(project)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env=version.environment, text=True, **pipes) as process:
        kept = Kept(version, process)
        found = Path(kept.answer()["from"])
        assert found.is_relative_to(version.source), found
        yield kept


def measured(sizes: _Sizes, cache: Path, told: Told) -> list[Kept]:
    """Both versions after all rounds, this one first."""
    with ExitStack() as closing:
        folder = Path(closing.enter_context(tempfile.TemporaryDirectory()))
        earlier = before(folder)
        server = closing.enter_context(postgres(cache))
        databases = tpch.copy_of(template(server, sizes.scale, folder, told), COPIES)
        work = Workload(databases)
        work.prepare()
        kept = []
        for number, version in enumerate([NOW, *([earlier] if earlier else [])]):
            told(f"{version.name}: first state")
            project = write_project(folder / str(number), databases, [AGGREGATE], f"v{number}")
            kept.append(closing.enter_context(keeping(version, project)))
        _rounds(kept, work, sizes, told)
        return kept


def _rounds(kept: Sequence[Kept], work: Workload, sizes: _Sizes, told: Told) -> None:
    for number in range(sizes.warm_ups + sizes.rounds):
        if number == sizes.warm_ups:
            for each in kept:
                each.forget()
        told(f"batch {number + 1} of {sizes.warm_ups + sizes.rounds}")
        work.mixed(CHANGES)
        for each in kept:
            each.asked("capture")
        for each in kept[:: 1 if number % 2 else -1]:
            each.batch()
    shown = [each.asked("rows") for each in kept]
    assert all(each == shown[0] for each in shown), shown


def findings(kept: Sequence[Kept], most: float | None) -> list[Finding]:
    """Seconds of each version, and how they compare round by round; `most` is the target."""
    what, view = f"{CHANGES} changes", "join + aggregate"
    found = []
    for each in kept:
        name = each.version.name
        found.append(Finding(f"{what}, {name}: refresh", view, SECONDS, each.refresh))
        found.append(Finding(f"{what}, {name}: refresh and apply", view, CPU, each.cpu))
    if len(kept) == 2:
        now, then = kept
        wall = [a / b for a, b in zip(now.refresh, then.refresh, strict=True)]
        cpu = [a / b for a, b in zip(now.cpu, then.cpu, strict=True)]
        found.insert(0, Finding(f"{what}: refresh, now / before", view, RATIO, wall, most=most))
        found.insert(1, Finding(f"{what}: CPU-seconds, now / before", view, RATIO, cpu))
    return found


_NOTES = f"""
One view over three relations in two PostgreSQL databases, TPC-H SF {{scale:g}}, {{warm}} batches of
warm-up. Before is commit {BEFORE[:7]}, the last one without `src/steadyview/plans`, run from git's
history beside this one over the same databases and changes; each has a process, a Spark and
replication slots of its own. Both showed the same rows in the end. Refresh is from freezing the
sources to publication; CPU-seconds are those of Python and Java together.
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.small_batch")
    parser.add_argument("--smoke", action="store_true", help="very little data, one round")
    sizes = SMOKE if parser.parse_args().smoke else FULL
    with alone() as cache:
        kept = measured(sizes, cache, teller())
    print("# A small batch, now and before\n")
    print("\n".join(findings_table(findings(kept, MOST if sizes is FULL else None))))
    if len(kept) == 1:
        print(f"\nGit's history does not have commit {BEFORE[:7]}: nothing to compare with.")
    print(_NOTES.format(scale=sizes.scale, warm=sizes.warm_ups).rstrip())


if __name__ == "__main__":
    main()
