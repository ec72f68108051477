"""Writers that keep changing several databases at once, until they are stopped."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping, Sequence

import psycopg

from tests.system.databases import LiveDatabase, Writer

Change = Callable[[Writer, random.Random], None]
Last = Callable[[str, Writer], None]
"""What a transaction of a source does last, before it is committed."""


class RolledBack(Exception):
    """A writer thought better of it."""


class Writers:
    """Threads that commit transactions until they are stopped; raises what a thread raised.

    `at` names the source of each thread, `changes` what may be done there; between two transactions
    of a thread are at most `pause` seconds.
    """

    def __init__(
        self,
        sources: Mapping[str, LiveDatabase],
        changes: Mapping[str, Sequence[Change]],
        at: Sequence[str],
        last: Last | None = None,
        pause: float = 0.2,
    ) -> None:
        self._stop = threading.Event()
        self._errors: list[BaseException] = []
        self._changes, self._last, self._pause = changes, last, pause
        self.committed: dict[str, int] = dict.fromkeys(sources, 0)
        self._threads = [
            threading.Thread(target=self._write, args=[source, sources[source].writer(), seed])
            for seed, source in enumerate(at)
        ]

    def __enter__(self) -> Writers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        if self._errors:
            raise self._errors[0]

    def _write(self, source: str, writer: Writer, seed: int) -> None:
        luck = random.Random(seed)
        try:
            while not self._stop.wait(luck.random() * self._pause):
                self._transaction(source, writer, luck)
        except BaseException as error:  # noqa: BLE001 - a thread must not die silently
            self._errors.append(error)

    def _transaction(self, source: str, writer: Writer, luck: random.Random) -> None:
        try:
            with writer.transaction():
                for _ in range(luck.randint(1, 5)):
                    luck.choice(self._changes[source])(writer, luck)
                if luck.random() < 0.15:
                    raise RolledBack
                if self._last is not None:
                    self._last(source, writer)
        except (RolledBack, psycopg.errors.DeadlockDetected, psycopg.errors.UniqueViolation):
            return
        self.committed[source] += 1
