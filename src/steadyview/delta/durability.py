"""Making written files survive a power cut: the bytes first, then the folder entries."""

from __future__ import annotations

import os
from pathlib import Path


def sync_file(path: Path) -> None:
    """When this returns, the file's content is on the disk."""
    _sync(path, os.O_RDONLY)


def sync_folder(path: Path) -> None:
    """When this returns, the folder's entries are on the disk."""
    _sync(path, os.O_RDONLY | os.O_DIRECTORY)


def make_folder(path: Path) -> None:
    """Create the folder and its missing parents, each entry durable. Idempotent."""
    if path.is_dir():
        return
    make_folder(path.parent)
    path.mkdir(exist_ok=True)
    sync_folder(path.parent)


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
