"""Where a refresh's time goes, seen from outside: named functions of the product are wrapped.

    part(f)  =  time in f  -  time in wrapped functions that f calls in the same thread
    rest     =  time of the refresh  -  sum of all parts

Only functions that a refresh of one view calls one after the other are wrapped: the parts add up.
"""

from __future__ import annotations

import functools
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrameWriter

from steadyview.delta import Table
from steadyview.engine.frames import Frames
from steadyview.engine.window_input import WindowInput
from steadyview.query import moment
from steadyview.runtime import maintainer
from steadyview.runtime.batch import Batch
from steadyview.runtime.capture import Capture
from steadyview.runtime.publisher import Publisher
from steadyview.warehouse.node_statement import NodeStatement
from steadyview.warehouse.view_store import ViewStore

_PARTS: list[tuple[Any, str, str]] = [
    (Capture, "wait_for", "wait for capture"),
    (moment.Moment, "__exit__", "close snapshots"),
    (maintainer, "admitted_since", "which transactions are shown"),
    (Batch, "prepare", "read the logs"),
    (Batch, "_ask_all", "ask the sources"),
    (WindowInput, "versions", "make and register versions"),
    (NodeStatement, "_state", "find the state"),
    (NodeStatement, "change", "run the statement"),
    (DataFrameWriter, "parquet", "write files by Spark"),
    (ViewStore, "append", "write the change"),
    (Table, "_open", "open Delta tables"),
    (Table, "collect", "list written files"),
    (Table, "commit", "commit the view delta"),
    (Publisher, "publish", "publish"),
    (Frames, "drop", "forget temporary views"),
]

_BESIDE = ("capture-", "log_", "lookup_")
"""Threads at whose end somebody waits, or nobody: their time is their caller's."""


class Trace:
    """Times by part; `watch` collects those of one piece of work."""

    def __init__(self) -> None:
        self._parts: Counter[str] = Counter()
        self._inside = threading.local()

    @contextmanager
    def installed(self, sources: list[Any]) -> Iterator[None]:
        """Wrap the product's functions for the length of the block."""
        families = {type(s) for s in sources}
        places = [*_PARTS, *((family, "snapshot", "open snapshots") for family in families)]
        originals = [(owner, name, getattr(owner, name)) for owner, name, _ in places]
        for (owner, name, label), (_, _, original) in zip(places, originals, strict=True):
            setattr(owner, name, self._wrapped(original, label))
        try:
            yield
        finally:
            for owner, name, original in originals:
                setattr(owner, name, original)

    def watch(self, work: Callable[[], Any]) -> tuple[float, dict[str, float]]:
        """Seconds the work took, and its parts with what is left over as "rest"."""
        self._parts.clear()
        started = time.perf_counter()
        work()
        took = time.perf_counter() - started
        parts = dict(self._parts)
        return took, {**parts, "rest": took - sum(parts.values())}

    def _wrapped(self, original: Callable[..., Any], label: str) -> Callable[..., Any]:
        @functools.wraps(original)
        def timed(*args: Any, **options: Any) -> Any:
            if threading.current_thread().name.startswith(_BESIDE):
                return original(*args, **options)
            outer = getattr(self._inside, "spent", 0.0)
            self._inside.spent = 0.0
            started = time.perf_counter()
            try:
                return original(*args, **options)
            finally:
                took = time.perf_counter() - started
                self._parts[label] += took - self._inside.spent
                self._inside.spent = outer + took

        return timed
