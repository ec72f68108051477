"""Making written files survive a power cut: the bytes first, then the folder entries."""

from __future__ import annotations

import os
from pathlib import Path

from steadyview.modes import follow_folder


def sync_file(path: Path) -> None:
    """When this returns, the file's content is on the disk, with the rights of its folder."""
    follow_folder(path)
    _sync(path, os.O_RDONLY)


def sync_folder(path: Path) -> None:
    """When this returns, the folder's entries are on the disk."""
    _sync(path, os.O_RDONLY | os.O_DIRECTORY)


def make_folder(path: Path) -> None:
    """Create the folder and its missing parents, each entry durable. Idempotent."""
    if path.is_dir():
        return
    make_folder(path.parent)
    try:
        path.mkdir()
    except FileExistsError:
        return
    follow_folder(path)
    sync_folder(path.parent)


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
