"""A query answered by the process that keeps the views: no Spark has to start for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from steadyview.runtime.control import asked
from steadyview.runtime.staleness import ANY_AGE, Staleness

if TYPE_CHECKING:
    from steadyview.runtime.asking import QueryAnswer


@dataclass(frozen=True)
class AnswerFacts:
    """What to know of an answer's rows. `cut`: there were more than was allowed.

    `way`: how its cn was chosen; `carried` and `recomputed`: the views that were brought there for
    it, the furthest over `commits` commits. `valid_time`: when the rows are what they are; `ages`:
    by source, how many seconds old its part may be (None: nobody knows).
    """

    cn: int
    time: str
    cut: bool
    warnings: tuple[str, ...] = ()
    way: str = "as published"
    carried: tuple[str, ...] = ()
    recomputed: tuple[str, ...] = ()
    commits: int = 0
    valid_time: Mapping[str, Any] = field(default_factory=dict)
    ages: Mapping[str, float | None] = field(default_factory=dict)

    @staticmethod
    def of(answer: QueryAnswer, *, cut: bool) -> AnswerFacts:
        """Of an answer."""
        chosen = answer.chosen
        return AnswerFacts(
            answer.cn,
            answer.time.isoformat(timespec="microseconds"),
            cut,
            answer.warnings,
            chosen.way,
            chosen.carried,
            chosen.recomputed,
            chosen.commits,
            answer.valid_time.to_dict(),
            chosen.ages,
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @staticmethod
    def read(found: Mapping[str, Any]) -> AnswerFacts:
        """Back from JSON."""
        listed = {k: tuple(found[k]) for k in ("warnings", "carried", "recomputed")}
        return AnswerFacts(**{**found, **listed})


@dataclass(frozen=True)
class Told:
    """The rows of an answer and what to know of them."""

    table: pa.Table
    facts: AnswerFacts


@dataclass(frozen=True)
class Wanted:
    """A query and its limits, as `Warehouse.query_at` has them."""

    sql: str
    at: int | datetime | str | None = None
    max_rows: int | None = None
    timeout: timedelta | None = None
    strict: bool = False
    staleness: Staleness = ANY_AGE


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
        "staleness": wanted.staleness.to_dict(),
    }
    with asked(warehouse, request) as found:
        if found is None:
            return None
        answer, stream = found
        with pa.ipc.open_stream(stream) as rows:
            table = rows.read_all()
    return Told(table, AnswerFacts.read(answer))
