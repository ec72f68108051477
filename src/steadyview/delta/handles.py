"""The newest handle of each table, kept while it is what opening the table again would give.

Opening reads the newest checkpoint and the commits behind it, some milliseconds each time; a batch
looks at its tables a hundred times. A handle is kept with a stamp of exactly those files: number,
length and times of change. As long as they are the same, and no next commit is there, another
opening would read the same bytes. Whatever somebody does to the log behind our back changes the
stamp, and the table is opened anew, so that damage is found as early as without all this.
"""

from __future__ import annotations

import json
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from deltalake import DeltaTable

from steadyview.delta.files import FileEntry

_MOST = 1_000
"""Tables of which a handle is kept; a hundred views have four each, and a relation one."""

Stamp = tuple[tuple[int, ...], ...]


@dataclass
class Opened:
    """A table at its newest version; `files` are kept once they were asked for."""

    handle: DeltaTable
    version: int
    stamp: Stamp | None
    files: list[FileEntry] | None = None


class Handles:
    """The handles of a process. Any thread may ask for any of them."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._kept: OrderedDict[str, Opened] = OrderedDict()
        self._lock = threading.Lock()

    def newest(self, path: Path, open_: Callable[[], DeltaTable]) -> Opened:
        """The table at its newest version; `open_` opens it."""
        name = str(path)
        with self._lock:
            known = self._kept.get(name)
        if known and known.stamp and known.stamp == _stamp(path, known.version):
            with self._lock:
                if name in self._kept:
                    self._kept.move_to_end(name)
            return known
        before = _birth(path)
        handle = open_()
        version = int(handle.version())
        # a table that was made anew meanwhile is another one
        stamp = _stamp(path, version) if before == _birth(path) else None
        found = Opened(handle, version, stamp)
        with self._lock:
            self._kept[name] = found
            self._kept.move_to_end(name)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return found


def _stamp(path: Path, version: int) -> Stamp | None:
    """Of all files that are read to open the table at this version; None if it is not the newest.

    None also where a file is missing that should be there: then nothing is kept.
    """
    log = path / "_delta_log"
    try:
        marks = [_mark(log)]
        since = -1
        if (last := log / "_last_checkpoint").exists():
            since = int(json.loads(last.read_bytes())["version"])
            marks.append(_mark(last))
            marks.append(_mark(log / f"{since:020}.checkpoint.parquet"))
        marks += [_mark(log / f"{v:020}.json") for v in range(since + 1, version + 1)]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return None if (log / f"{version + 1:020}.json").exists() else tuple(marks)


def _mark(path: Path) -> tuple[int, ...]:
    found = os.stat(path)
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _birth(path: Path) -> tuple[int, ...] | None:
    """What no other table in the same place has: its first commit, as long as that is kept."""
    log = path / "_delta_log"
    for first in (log / f"{0:020}.json", log):
        with suppress(OSError):
            found = _mark(first)
            return found if first is not log else found[:1]
    return None
