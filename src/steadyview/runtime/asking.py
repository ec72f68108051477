"""A user's query over the views: judged, all views at one cn, with limits, and with what to know.

Claim: nothing but the project's views and tables of its sources is read (`engine/guard.py`), all of
them at one cn. What a
reader should know (a view that stands still, a text in double quotes that looks like a column) is a
warning of the answer; `strict` makes a stopped view an error.
"""

from __future__ import annotations

import difflib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from typing import TypeVar

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from steadyview.catalog import ViewRow, from_us
from steadyview.engine.causes import causes
from steadyview.engine.failures import reason
from steadyview.engine.guard import Statement, read
from steadyview.errors import ConfigError, QueryRefused, QueryTooLong, ViewStopped
from steadyview.plans.plan import HIDDEN
from steadyview.runtime.bound_times import doubts, shown_times
from steadyview.runtime.choosing import Choice, Choosing, Means
from steadyview.runtime.kept import all_recalled, policy_of
from steadyview.runtime.live_tables import Following, LiveReading
from steadyview.runtime.parts import Parts
from steadyview.runtime.planning import Planned, all_sources
from steadyview.runtime.serving import (
    At,
    check_not_refused,
    meant_at,
    no_state,
    rows_reaching,
)
from steadyview.runtime.staleness import ANY_AGE, Staleness
from steadyview.runtime.valid_times import ValidTime, told
from steadyview.views.mentions import double_quoted, several_statements
from steadyview.views.query_text import over_tables, tables_meant

_AGAIN = 0.5
"""Seconds between two attempts to cancel: a query runs job after job, some not begun yet."""
_GRACE = 1.0
"""Seconds until a query that was cancelled is said to go on."""
T = TypeVar("T")
_numbers = count(1)


@dataclass(frozen=True)
class Limits:
    """What a caller allows: so many rows, so much time, no stopped view. None: no limit."""

    max_rows: int | None = None
    timeout: timedelta | None = None
    strict: bool = False


@dataclass(frozen=True)
class AnswerRows:
    """The rows of an answer; `cut`: there were more than the caller allowed."""

    table: pa.Table
    cut: bool


@dataclass(frozen=True)
class QueryAnswer:
    """Rows, and the cn and time they are of. `warnings` are what a reader should know of them.

    `chosen`: how that cn was chosen; `valid_time`: when the rows are what they are.

    `frame` has at most the rows that the caller allowed; only `rows` keeps the limit of time, which
    is counted from the question on. Close it.
    """

    frame: DataFrame
    cn: int
    time: datetime
    chosen: Choice
    valid_time: ValidTime
    warnings: tuple[str, ...] = ()
    _whole: DataFrame | None = None
    _limits: Limits = Limits()
    _asked: float = 0.0
    _closing: ExitStack = field(default_factory=ExitStack)

    def close(self) -> None:
        """Forget what was read for it; its rows cannot be had any more."""
        self._closing.close()

    def rows(self) -> AnswerRows:
        """All rows, within the limits; QueryTooLong if they take longer than allowed."""
        limit = self._limits.max_rows
        if limit is None or self._whole is None:
            return AnswerRows(self._collected(self.frame), cut=False)
        found = self._collected(self._whole.limit(limit + 1))
        return AnswerRows(found.slice(0, limit), cut=found.num_rows > limit)

    def _collected(self, frame: DataFrame) -> pa.Table:
        return _limited(self._limits, self._asked, frame.sparkSession, frame.toArrow)


@dataclass(frozen=True)
class Question:
    """What is asked: Spark SQL, of which moment, within which limits."""

    sql: str
    at: At = None
    limits: Limits = Limits()
    staleness: Staleness = ANY_AGE


@dataclass(frozen=True)
class Surroundings:
    """What answering needs of whoever holds the warehouse.

    `files`: the names of the views that the project has files of, asked for only if need be.
    `following`: to wait for what sources have committed; `means`: see `choosing`.
    """

    files: Callable[[], Sequence[str]]
    following: Following
    means: Means


def answer(parts: Parts, spark: SparkSession, asked: Question, around: Surroundings) -> QueryAnswer:
    """Spark SQL over the views and tables of sources it reads, all of them at one cn."""
    begun, closing = time.monotonic(), ExitStack()
    work = partial(_answer, parts, spark, asked, begun, around, closing)
    try:
        return _limited(asked.limits, begun, spark, work)
    except BaseException:
        closing.close()
        raise


def _answer(
    parts: Parts,
    spark: SparkSession,
    asked: Question,
    begun: float,
    around: Surroundings,
    closing: ExitStack,
) -> QueryAnswer:
    kept = parts.catalog.views.all()
    with _told([row.name for row in kept if not row.name.startswith(HIDDEN)]):
        statement = _statement(spark, asked.sql)
        rows = {row.name: row for row in _views(kept, statement, around.files)}
        plans = all_recalled(kept)
        views = [plans[name] for name in rows]
        warnings = _stopped(rows) + _unproved(parts, views, plans)
        if warnings and asked.limits.strict:
            raise _strictly(warnings[0])
        read = {name: all_sources(plans[name], plans) for name in rows}
        choosing = Choosing(parts, list(rows), read, around.means, _allowed(asked, views))
        choice = choosing.choose(asked.at)
        warnings += _doubts(parts, asked, rows, read)
        cn, allowed = choice.cn, list(rows)
        reading = LiveReading(parts, spark, around.following, closing)
        if statement.tables:
            cn, statement, tables = _over_tables(parts, asked, statement, rows, cn, reading)
            allowed += tables
        frames = {
            n: rows_reaching(parts, spark, row, choice.at[n])
            for n, row in choice.rows.items()
            if n not in choice.recomputed
        }
        if choice.recomputed:
            frames |= reading.recompute(choice.recomputed, plans, cn)
        for name, rows_of_view in frames.items():
            rows_of_view.createOrReplaceTempView(name)
        frame = statement.frame(allowed)
    limit = asked.limits.max_rows
    return QueryAnswer(
        frame if limit is None else frame.limit(limit),
        cn,
        from_us(parts.catalog.commits.time_of(cn)),
        choice,
        told(parts.catalog, choice.validity),
        (*warnings, *_texts_for_names(asked.sql, views)),
        frame,
        asked.limits,
        begun,
        closing,
    )


def _allowed(asked: Question, views: Sequence[Planned]) -> Staleness:
    """What the caller allows; where nothing is said, the strictest of the views' own bounds."""
    if asked.staleness.bound is not None or asked.at is not None:
        return asked.staleness
    bounds = [p.text.max_staleness for p in views if p.text is not None]
    known = [bound for bound in bounds if bound is not None]
    return replace(asked.staleness, bound=min(known, default=None))


def _over_tables(
    parts: Parts,
    asked: Question,
    statement: Statement,
    rows: Mapping[str, ViewRow],
    cn: int,
    reading: LiveReading,
) -> tuple[int, Statement, list[str]]:
    """The query over tables of sources as of the cn at which it is answered, and their names."""
    if not statement.plain:
        raise QueryRefused(
            "EXPLAIN of a query over tables of sources is not allowed",
            detail="its tables are read before it is planned",
            hint="explain it over views alone",
        )
    sources = parts.catalog.sources
    known = [r for s in sources.states() for r in sources.schemas(s.name)]
    relations = tables_meant(asked.sql, statement.tables, known)
    found = reading.read(asked.sql, relations, cn if rows or asked.at is not None else None)
    text = over_tables(asked.sql, found.names, relations, rows)
    return found.cn, _statement(statement.spark, text), list(found.names.values())


def _statement(spark: SparkSession, sql: str) -> Statement:
    try:
        return read(spark, sql)
    except PySparkException:
        if several_statements(sql):
            raise QueryRefused("a query is one statement", hint="ask one after another") from None
        raise


@contextmanager
def _told(views: Sequence[str]) -> Iterator[None]:
    """Spark's objections to the text, in our words."""
    try:
        yield
    except PySparkException as error:
        raise ConfigError(
            "Spark rejects the query",
            detail=reason(error),
            hint=f"views: {', '.join(sorted(views)) or 'none'}",
        ) from error
    except Py4JError as error:
        if not any(c.kind == "java.lang.StackOverflowError" for c in causes(error)):
            raise
        raise QueryRefused("the query is nested too deeply", hint="split it") from error


def _views(
    kept: Sequence[ViewRow], statement: Statement, files: Callable[[], Sequence[str]]
) -> list[ViewRow]:
    """The views that the statement reads; QueryRefused for any other name."""
    known = {row.name.lower(): row for row in kept if not row.name.startswith(HIDDEN)}
    found = []
    for name in sorted({name.lower() for name in statement.relations}):
        if name not in known:
            raise _unknown(name, [row.name for row in known.values()], files())
        check_not_refused(known[name])
        found.append(known[name])
    return found


def _unknown(name: str, kept: Sequence[str], files: Sequence[str]) -> Exception:
    for found in files:
        if found.lower() == name:
            return no_state(found)
    names = sorted({*kept, *files})
    close = difflib.get_close_matches(name, [n.lower() for n in names], n=1)
    return QueryRefused(
        f'there is no view "{name}"',
        detail=f"views: {', '.join(names) or 'none'}",
        hint=f'did you mean "{close[0]}"?' if close else None,
    )


def _strictly(warning: str) -> ViewStopped:
    fact, _, detail = warning.partition(": ")
    return ViewStopped(fact, detail=detail, hint="without --strict its last good state is read")


def _stopped(rows: Mapping[str, ViewRow]) -> list[str]:
    """A sentence for every view that stands still, for good or for now."""
    words = {r.name: f"is {r.state}" for r in rows.values() if r.state in ("stopped", "paused")}
    words |= {r.name: "does not go on" for r in rows.values() if r.error and r.name not in words}
    shown = ((rows[name], word) for name, word in words.items())
    gone = "its file is gone"
    return [
        f'view "{row.name}" {word} and shows cn {row.cn}: {row.error or gone}'
        for row, word in shown
    ]


def _doubts(
    parts: Parts,
    asked: Question,
    rows: Mapping[str, ViewRow],
    read: Mapping[str, frozenset[str]],
) -> list[str]:
    """A sentence for what the answer shows of a time that a gate could not bind exactly."""
    if asked.at is not None:
        time, meant = meant_at(parts.catalog, asked.at)
        sources = frozenset().union(*read.values())
        told = {name: why for name, why in meant.told.items() if name in sources}
        return [] if time is None else [*doubts(time, told)]
    late = {r.name: r.cn for r in rows.values() if policy_of(r) != "immediate"}
    shown = [
        time
        for name, cn in late.items()
        if cn is not None
        for time in shown_times(parts.catalog, cn, cn, read[name])
    ]
    return list(dict.fromkeys(text for t in shown for text in doubts(t.time, t.told)))


def _unproved(
    parts: Parts, views: Sequence[Planned], plans: Mapping[str, Planned]
) -> list[str]:
    """A sentence for every source of the views that is not captured until somebody acts."""
    read = frozenset().union(*(all_sources(plan, plans) for plan in views))
    wrong = [s for s in parts.catalog.sources.states() if s.name in read and s.definite]
    return [
        f'source "{s.name}" is not captured any more: {(s.error or "").splitlines()[0]}'
        for s in wrong
        if s.error
    ]


def _texts_for_names(sql: str, views: Sequence[Planned]) -> Iterator[str]:
    """Spark takes "id" for a text, where other databases take it for the column id."""
    columns = {name.lower(): name for plan in views for name, _ in plan.columns}
    for text in dict.fromkeys(double_quoted(sql)):
        if text.lower() in columns:
            yield f'"{text}" is the text \'{text}\' here; the column is written {text} or `{text}`'


def _too_long(timeout: timedelta, *, goes_on: bool) -> QueryTooLong:
    seconds = f"{timeout.total_seconds():g} s"
    went = "is not answered" if goes_on else "was cancelled"
    return QueryTooLong(
        f"the query took longer than {seconds} and {went}",
        detail="Spark computes a constant of it and cannot be interrupted: that goes on for a while"
        if goes_on
        else None,
        hint="allow more time with --timeout, or ask for less",
    )


def _limited(limits: Limits, asked: float, spark: SparkSession, work: Callable[[], T]) -> T:
    """What the work gives, within what is left of the time since `asked`; QueryTooLong if it fails.

    It has a thread of its own: Spark's jobs can be cancelled, but what Spark computes while it
    plans (constants are folded then) can only be left alone.
    """
    if limits.timeout is None:
        return work()
    context, group = spark.sparkContext, f"steadyview query {next(_numbers)}"
    found: Future[T] = Future()

    def carry_out() -> None:
        context.setJobGroup(group, group, interruptOnCancel=True)
        try:
            found.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            found.set_exception(error)

    def cancel() -> None:
        # Spark may be stopped meanwhile, and the query with it
        with suppress(Py4JError):
            while not found.done():
                context.cancelJobGroup(group)
                wait([found], _AGAIN)

    threading.Thread(target=carry_out, name="query", daemon=True).start()
    wait([found], max(asked + limits.timeout.total_seconds() - time.monotonic(), 0.0))
    if not found.done():
        threading.Thread(target=cancel, name="query-timeout", daemon=True).start()
        wait([found], _GRACE)
        raise _too_long(limits.timeout, goes_on=not found.done())
    return found.result()
