"""A warehouse in this process: asked like a keeper, or kept by `run` in a thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import steadyview
from steadyview.runtime.status import Status

PATIENCE = 180.0
"""Seconds after which a state that does not come is a failure; no test waits so long otherwise."""


class Here:
    """An open warehouse that answers the questions a keeper answers."""

    def __init__(self, warehouse: Any) -> None:
        self.warehouse = warehouse

    def ask(self, do: str, **how: Any) -> Any:
        return getattr(self, f"_{do}")(**how)

    def _rows(self, view: str, at: int | None = None) -> list[list[Any]]:
        return [list(row) for row in self.warehouse.view(view).read(at).collect()]

    def _verify(self, at: int | None = None, views: list[str] | None = None) -> list[dict]:
        return [v.to_dict() for v in self.warehouse.verify(views, at)]


@contextmanager
def opened(folder: Any, spark: Any) -> Iterator[Here]:
    with steadyview.open(folder, spark=spark) as warehouse:
        yield Here(warehouse)


class Running:
    """`run` at work; `until` waits for what it reports."""

    def __init__(self, warehouse: Any, **options: Any) -> None:
        self._warehouse, self._options = warehouse, options
        self._stop = threading.Event()
        self._news = threading.Condition()
        self._status: Status | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Running:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def until(self, what: Callable[[Status], bool]) -> Status:
        """The first reported status that is so; fails when `run` ends before."""

        def there() -> bool:
            ended = not self._thread.is_alive()
            return ended or (self._status is not None and what(self._status))

        with self._news:
            assert self._news.wait_for(there, PATIENCE), f"still {self._status}"
            if self._error is not None:
                raise self._error
            assert self._status is not None
            return self._status

    def _run(self) -> None:
        try:
            self._warehouse.run(self._stop, self._told, **self._options)
        except BaseException as error:  # noqa: BLE001 - raised again by `until`
            self._error = error
        with self._news:
            self._news.notify_all()

    def _told(self, status: Status) -> None:
        with self._news:
            self._status = status
            self._news.notify_all()


def published(status: Status) -> bool:
    """Every view shows the newest cn."""
    return bool(status.views) and all(v.cn == status.cn for v in status.views)
