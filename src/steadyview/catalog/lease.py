"""One process at a time works on a warehouse.

The lease is an operating-system lock on `<warehouse>/lease`: it ends with its process, however that
ends. The file holds who took it, for people; only the lock decides. A second file, `lease.gate`, is
locked for the moment of taking or asking, so that asking never makes taking fail.

A process that is stopped keeps it, and others are told so. Should the lock be lost all the same (a
file system that forgets locks, a file that somebody removed), the catalog has a number that grows
whenever the lease is taken: who took it before can write nothing any more (`Catalog.held`).
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path

from steadyview.errors import WarehouseHeld
from steadyview.modes import make_root, open_file


@dataclass(frozen=True)
class Holder:
    """Who works on the warehouse: process, host, since when (microseconds), doing what.

    `socket`: where it listens to other commands; None if it does not.
    """

    pid: int
    host: str
    started: int
    command: str
    socket: str | None = None

    def __str__(self) -> str:
        since = datetime.fromtimestamp(self.started / 1_000_000, UTC).strftime(
            "%Y-%m-%d %H:%M:%S UTC"
        )
        return f'process {self.pid} on host "{self.host}" since {since} ("{self.command}")'


class Lease:
    """Held from `acquire` to `release`, or to the end of the process."""

    def __init__(self, descriptor: int, by: Holder) -> None:
        self._descriptor: int | None = descriptor
        self._by = by

    @staticmethod
    def acquire(warehouse: Path, by: Holder) -> Lease:
        """Take the lease; WarehouseHeld, naming the holder, if another has it.

        Creates the warehouse's folder if there is none.
        """
        with _access(warehouse):
            make_root(warehouse, shared=False)
            with _gate(warehouse):
                descriptor = open_file(warehouse / "lease")
                try:
                    _take(warehouse, descriptor, by)
                except BaseException:
                    os.close(descriptor)
                    raise
        return Lease(descriptor, by)

    def listens_at(self, socket: str | None) -> None:
        """Tell other commands where the holder listens; None: no longer."""
        if self._descriptor is not None:
            _write(self._descriptor, json.dumps(asdict(replace(self._by, socket=socket))))

    def release(self) -> None:
        """Give it back. Safe to call twice."""
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def holder(warehouse: Path) -> Holder | None:
    """Who holds the lease now; None if nobody does."""
    if not (warehouse / "lease").exists():
        return None
    with _access(warehouse), _gate(warehouse):
        descriptor = os.open(warehouse / "lease", os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _read(descriptor)
        else:
            return None
        finally:
            os.close(descriptor)


def _take(warehouse: Path, descriptor: int, by: Holder) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _held(warehouse, _read(descriptor)) from None
    _write(descriptor, json.dumps(asdict(by)))


@contextmanager
def _gate(warehouse: Path) -> Iterator[None]:
    descriptor = open_file(warehouse / "lease.gate")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _access(warehouse: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        # imported late: `status` should not wait for Delta's library
        from steadyview.delta.failures import unavailable

        raise unavailable(warehouse / "lease", error) from error


def _read(descriptor: int) -> Holder:
    """Who wrote the file; a holder that has just been killed or is just starting left no text."""
    text = os.pread(descriptor, 65536, 0)
    try:
        found = json.loads(text)
    except ValueError:
        return Holder(0, "unknown", 0, "unknown")
    known = {f.name for f in fields(Holder)}
    return Holder(**{name: value for name, value in found.items() if name in known})


def _write(descriptor: int, text: str) -> None:
    """One write: whoever reads meanwhile has the text before, this one, or a torn one."""
    os.pwrite(descriptor, text.encode(), 0)
    os.ftruncate(descriptor, len(text.encode()))


def _held(warehouse: Path, found: Holder) -> WarehouseHeld:
    return WarehouseHeld(
        f'warehouse "{warehouse}" is held by {found}',
        hint="wait for it, or stop it; reading (status, query, verify) works meanwhile",
    )
