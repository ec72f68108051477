"""Who may read the warehouse: its owner alone, or its group as well where it is shared.

Claim: the warehouse's folder is 0700 (0770 and set-group-ID where shared), so nothing below it can
be reached by others, whoever writes it; what we make ourselves has rights as its folder has: 0600 /
0700, or 0660 / 0770. The mode of the folder is the only place where it is decided.
Not promised: rights of files that others (Spark's JVM) write below; a command line narrows the
umask for those.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PRIVATE, _SHARED = 0o700, 0o2770
_FILE = 0o666
_GROUP = 0o070


def make_root(folder: Path, *, shared: bool) -> None:
    """Create the warehouse's folder with its rights; one that exists stays as it is."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir(mode=_PRIVATE)
    except FileExistsError:
        return
    if shared:
        folder.chmod(_SHARED)


def settle(folder: Path, *, shared: bool) -> str | None:
    """Give an existing warehouse's folder the rights it should have; what was done, for people.

    Only its owner can; a folder of somebody else, or none, is left alone.
    """
    if not folder.is_dir() or folder.stat().st_uid != os.geteuid():
        return None
    found = stat.S_IMODE(folder.stat().st_mode)
    wanted = _SHARED if shared else _PRIVATE
    if found & 0o777 == wanted & 0o777:
        return None
    folder.chmod(wanted)
    if shared:
        _open_to_group(folder)
        return f'warehouse "{folder}" was opened to its group (shared = true)'
    return f'warehouse "{folder}" was open to others (mode {found:04o}); now to its owner only'


def follow_folder(path: Path) -> None:
    """Give what we made the rights of its folder; what another of the group made has them."""
    found, wanted = path.stat(), _mode(path.parent, folder=path.is_dir())
    if found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) != wanted:
        path.chmod(wanted)


def open_file(path: Path) -> int:
    """A descriptor to read and write a file that is made, with its folder's rights, if missing."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return os.open(path, os.O_RDWR)
    os.fchmod(descriptor, _mode(path.parent, folder=False))
    return descriptor


@contextmanager
def narrow_umask(*, shared: bool) -> Iterator[None]:
    """Inside, this process and those it starts make files for the owner, or the group, alone."""
    before = os.umask(0o077)
    os.umask((before & ~_GROUP) | 0o007 if shared else before | 0o077)
    try:
        yield
    finally:
        os.umask(before)


def _mode(parent: Path, *, folder: bool) -> int:
    shared = parent.stat().st_mode & stat.S_IWGRP
    mode = _SHARED if shared else _PRIVATE
    return mode if folder else mode & _FILE


def _open_to_group(root: Path) -> None:
    for path in root.rglob("*"):
        if not path.is_symlink():
            with suppress(FileNotFoundError, PermissionError):
                path.chmod(_SHARED if path.is_dir() else _SHARED & _FILE)
