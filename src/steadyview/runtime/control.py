"""How commands reach the process that keeps the views: a socket, for the same user only.

One request and one answer per connection, a line of JSON each; behind the answer to a query come
its rows as an Arrow stream. Where nobody listens, a command does its work itself.

The socket lies in a folder of its own (0700), because a socket's path may be a hundred bytes long
and a warehouse's may be longer. Where that is, is written into the lease: a command finds it
whatever its own environment says. Without a socket the run goes on, unreachable.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import struct
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import BufferedRWPair
from pathlib import Path
from typing import Any

from steadyview import errors
from steadyview.catalog import holder
from steadyview.errors import DefiniteError, SteadyviewError, StorageUnavailable

Answer = dict[str, Any]
Stream = BufferedRWPair
Handler = Callable[[dict[str, Any], Stream], Answer | None]
"""Answers a request; None: it has written its answer to the stream itself."""

_PARTS = ("message", "detail", "hint", "source")
_CONNECT_SECONDS = 2.0
_LONGEST_REQUEST = 1 << 20


def socket_paths(warehouse: Path) -> list[Path]:
    """Where the process that keeps this warehouse may listen, the best place first."""
    folders = [os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp"]  # noqa: S108
    name = hashlib.sha256(str(warehouse.absolute()).encode()).hexdigest()[:16]
    own = f"steadyview-{os.getuid()}"
    return [Path(f) / own / f"{name}.sock" for f in dict.fromkeys(folders) if f]


class Listener:
    """Answers requests until it is closed; each connection has a thread."""

    def __init__(self, warehouse: Path, handler: Handler) -> None:
        """StorageUnavailable if there is no place to listen."""
        self._handler = handler
        self.path, self._socket = _bound(socket_paths(warehouse))
        self._thread = threading.Thread(target=self._listen, name="control", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Answer nobody any more."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)
        with suppress(OSError):
            # wakes whoever accepts
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, suppress(OSError), connection.makefile("rwb") as stream:
            if _peer(connection) != os.getuid():
                return
            try:
                request = json.loads(stream.readline(_LONGEST_REQUEST))
                found = self._handler(request, stream)
            except Exception as error:  # noqa: BLE001 - told to whoever asked
                found = {"error": _packed(error)}
            if found is not None:
                write_answer(stream, found)


def write_answer(stream: Stream, answer: Answer) -> None:
    """The answer as one line."""
    stream.write(json.dumps(answer).encode() + b"\n")
    stream.flush()


@contextmanager
def asked(warehouse: Path, request: dict[str, Any]) -> Iterator[tuple[Answer, Stream] | None]:
    """The answer of the process that keeps the warehouse, and what follows it; None: nobody there.

    Raises what that process raised.
    """
    held = holder(warehouse)
    connection = _connected(held.socket) if held and held.socket else None
    if connection is None:
        yield None
        return
    with connection, connection.makefile("rwb") as stream:
        write_answer(stream, request)
        line = stream.readline()
        if not line:
            raise StorageUnavailable("the process that keeps the views ended", hint="try again")
        answer = json.loads(line)
        if "error" in answer:
            raise _unpacked(answer["error"])
        yield answer, stream


def ask(warehouse: Path, request: dict[str, Any]) -> Answer | None:
    """The same where nothing follows the answer."""
    with asked(warehouse, request) as found:
        return None if found is None else found[0]


def _bound(paths: Sequence[Path]) -> tuple[Path, socket.socket]:
    """A socket at the first of the places where there can be one."""
    reasons = []
    for path in paths:
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            _own_folder(path.parent)
            # the lease is ours: whoever listened here before is gone
            path.unlink(missing_ok=True)
            listening.bind(str(path))
            os.chmod(path, 0o600)
            listening.listen()
        except (OSError, DefiniteError) as error:
            listening.close()
            reasons.append(f'"{path}": {error}')
        else:
            return path, listening
    raise StorageUnavailable(
        "there is no place for a socket: other commands do not reach this process",
        detail="; ".join(reasons),
        hint="set XDG_RUNTIME_DIR to a folder of yours with a short name",
    )


def _connected(path: str) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(_CONNECT_SECONDS)
    try:
        connection.connect(path)
    except OSError:
        connection.close()
        return None
    connection.settimeout(None)
    if _peer(connection) != os.getuid():
        connection.close()
        return None
    return connection


def _peer(connection: socket.socket) -> int:
    """The user at the other end."""
    size = struct.calcsize("3i")
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    return int(struct.unpack("3i", found)[1])


def _own_folder(folder: Path) -> None:
    """A folder that nobody else can write to: another user may have made one of its name."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if found.st_uid != os.getuid() or not folder.is_dir() or folder.is_symlink():
        raise DefiniteError(
            f'folder "{folder}" belongs to somebody else', hint="set XDG_RUNTIME_DIR to another one"
        )
    folder.chmod(0o700)


def _packed(error: Exception) -> dict[str, Any]:
    if not isinstance(error, SteadyviewError):
        error = SteadyviewError(
            "the process that keeps the views met a fault of its own",
            detail=f"{type(error).__name__}: {error}",
        )
    parts = {p: getattr(error, p) for p in _PARTS if getattr(error, p) is not None}
    return {"kind": type(error).__name__, **parts}


def _unpacked(parts: dict[str, Any]) -> SteadyviewError:
    kind = getattr(errors, parts.pop("kind"), SteadyviewError)
    message = parts.pop("message")
    try:
        error: SteadyviewError = kind(message, **parts)
    except TypeError:
        # a kind with parts of its own, which did not travel
        return DefiniteError(message, **parts)
    return error
