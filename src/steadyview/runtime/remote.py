"""A query answered by the process that keeps the views: no Spark has to start for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from steadyview.runtime.control import ask, asked
from steadyview.runtime.routes import Route, RoutePlan
from steadyview.runtime.staleness import ANY_AGE, Staleness

if TYPE_CHECKING:
    from steadyview.runtime.asking import QueryAnswer


@dataclass(frozen=True)
class AnswerFacts:
    """What to know of an answer's rows. `cut`: there were more than was allowed.

    `way`: how its cn was chosen; `carried` and `recomputed`: the views that were brought there for
    it, the furthest over `commits` commits, which changed `changed_rows` rows of their tables.
    `valid_time`: when the rows are what they are; `ages`: by source, how many seconds old its part
    may be (None: nobody knows). `route`: the view that answered for tables, and by which rule.
    """

    cn: int
    time: str
    cut: bool
    warnings: tuple[str, ...] = ()
    way: str = "as published"
    carried: tuple[str, ...] = ()
    recomputed: tuple[str, ...] = ()
    commits: int = 0
    changed_rows: int = 0
    valid_time: Mapping[str, Any] = field(default_factory=dict)
    ages: Mapping[str, float | None] = field(default_factory=dict)
    route: Mapping[str, str] | None = None

    @staticmethod
    def of(answer: QueryAnswer, *, cut: bool) -> AnswerFacts:
        """Of an answer."""
        chosen, taken = answer.chosen, answer.route.taken
        return AnswerFacts(
            answer.cn,
            answer.time.isoformat(timespec="microseconds"),
            cut,
            answer.warnings,
            chosen.way,
            chosen.carried,
            chosen.recomputed,
            chosen.cost.commits,
            chosen.cost.rows,
            answer.valid_time.to_dict(),
            chosen.ages,
            None if taken is None else {"view": taken.view, "rule": taken.rule, "sql": taken.sql},
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
    route: Route = Route.auto

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "sql": self.sql,
            "at": self.at.isoformat() if isinstance(self.at, datetime) else self.at,
            "max_rows": self.max_rows,
            "timeout": None if self.timeout is None else self.timeout.total_seconds(),
            "strict": self.strict,
            "staleness": self.staleness.to_dict(),
            "route": self.route.value,
        }

    @staticmethod
    def of(found: Mapping[str, Any]) -> Wanted:
        """Back from JSON."""
        timeout = found["timeout"]
        return Wanted(
            found["sql"],
            found["at"],
            found["max_rows"],
            None if timeout is None else timedelta(seconds=timeout),
            found["strict"],
            Staleness.of(found["staleness"]),
            Route(found["route"]),
        )


def told_by_keeper(warehouse: Path, wanted: Wanted) -> Told | None:
    """The answer of the process that keeps the warehouse; None if there is none."""
    with asked(warehouse, {"do": "query", **wanted.to_dict()}) as found:
        if found is None:
            return None
        answer, stream = found
        with pa.ipc.open_stream(stream) as rows:
            table = rows.read_all()
    return Told(table, AnswerFacts.read(answer))


def explained_by_keeper(warehouse: Path, wanted: Wanted) -> RoutePlan | None:
    """Which view would answer, as the process that keeps the warehouse says; None: nobody does."""
    found = ask(warehouse, {"do": "explain query", **wanted.to_dict()})
    return None if found is None else RoutePlan.of(found)
