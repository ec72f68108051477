"""A query answered by the process that keeps the views: no Spark has to start for it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa

from steadyview.runtime.control import asked


@dataclass(frozen=True)
class Told:
    """The rows of an answer and what to know of them; `cut`: there were more than was allowed."""

    table: pa.Table
    cut: bool
    cn: int
    time: datetime
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Wanted:
    """A query and its limits, as `Warehouse.query_at` has them."""

    sql: str
    at: int | datetime | str | None = None
    max_rows: int | None = None
    timeout: timedelta | None = None
    strict: bool = False


def told_by_keeper(warehouse: Path, wanted: Wanted) -> Told | None:
    """The answer of the process that keeps the warehouse; None if there is none."""
    at = wanted.at.isoformat() if isinstance(wanted.at, datetime) else wanted.at
    timeout = None if wanted.timeout is None else wanted.timeout.total_seconds()
    request = {
        "do": "query",
        "sql": wanted.sql,
        "at": at,
        "max_rows": wanted.max_rows,
        "timeout": timeout,
        "strict": wanted.strict,
    }
    with asked(warehouse, request) as found:
        if found is None:
            return None
        answer, stream = found
        with pa.ipc.open_stream(stream) as rows:
            table = rows.read_all()
    time = datetime.fromisoformat(answer["time"])
    return Told(table, answer["cut"], answer["cn"], time, tuple(answer["warnings"]))
