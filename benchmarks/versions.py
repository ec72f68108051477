"""The product's source as it stood at a commit, beside the one of today.

The earlier one is taken out of git's history into a temporary folder. It runs with the packages
that are installed: both versions ask for the same ones.
"""

from __future__ import annotations

import os
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.place import HERE

BEFORE = "da29fcc89656287bf2f5c3577a380514e146109a"
"""The last commit before views became plans over versions (before src/steadyview/plans)."""


@dataclass(frozen=True)
class Version:
    """A folder of the product's source, and what to call it."""

    name: str
    source: Path

    @property
    def environment(self) -> dict[str, str]:
        """In which Python finds this version."""
        return {**os.environ, "PYTHONPATH": str(self.source)}


NOW = Version("now", HERE.parent / "src")


def before(folder: Path) -> Version | None:
    """The earlier version, taken out into the folder; None where git does not have it."""
    command = ["git", "-C", str(HERE.parent), "archive", "--format=tar", BEFORE, "src"]
    try:
        found = subprocess.run(command, capture_output=True, check=False)
    except FileNotFoundError:
        return None
    if found.returncode:
        return None
    archive = folder / "before.tar"
    archive.write_bytes(found.stdout)
    with tarfile.open(archive) as tar:
        tar.extractall(folder / "before", filter="data")
    return Version(f"before ({BEFORE[:7]})", folder / "before" / "src")
