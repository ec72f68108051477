"""A user's query over the views: judged, all views at one cn, with limits, and with what to know.

Claim: nothing but the project's views is read (`engine/guard.py`), all of them at one cn. What a
reader should know (a view that stands still, a text in double quotes that looks like a column) is a
warning of the answer; `strict` makes a stopped view an error.
"""

from __future__ import annotations

import difflib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
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
from steadyview.runtime.gaps import newest_state
from steadyview.runtime.kept import all_recalled
from steadyview.runtime.parts import Parts
from steadyview.runtime.planning import Planned, all_sources
from steadyview.runtime.serving import At, check_not_refused, no_state, resolve, rows_at
from steadyview.views.mentions import double_quoted, several_statements
from steadyview.warehouse.states import check_readable

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

    `frame` has at most the rows that the caller allowed; only `rows` keeps the limit of time, which
    is counted from the question on.
    """

    frame: DataFrame
    cn: int
    time: datetime
    warnings: tuple[str, ...] = ()
    _whole: DataFrame | None = None
    _limits: Limits = Limits()
    _asked: float = 0.0

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


def answer(
    parts: Parts, spark: SparkSession, asked: Question, files: Callable[[], Sequence[str]]
) -> QueryAnswer:
    """Spark SQL over the views it reads, all of them at one cn, as the catalog knows them.

    `files`: the names of the views that the project has files of, asked for only if need be.
    """
    begun = time.monotonic()
    work = partial(_answer, parts, spark, asked, begun, files)
    return _limited(asked.limits, begun, spark, work)


def _answer(
    parts: Parts,
    spark: SparkSession,
    asked: Question,
    begun: float,
    files: Callable[[], Sequence[str]],
) -> QueryAnswer:
    kept = parts.catalog.views.all()
    with _told([row.name for row in kept if not row.name.startswith(HIDDEN)]):
        statement = _statement(spark, asked.sql)
        rows = {row.name: row for row in _views(kept, statement, files)}
        plans = all_recalled(kept)
        views = [plans[name] for name in rows]
        warnings = _stopped(rows) + _unproved(parts, views, plans)
        if warnings and asked.limits.strict:
            raise _strictly(warnings[0])
        cn = _moment(parts, rows, asked.at)
        for name in rows:
            rows_at(parts, spark, name, cn).createOrReplaceTempView(name)
        frame = statement.frame(list(rows))
    limit = asked.limits.max_rows
    return QueryAnswer(
        frame if limit is None else frame.limit(limit),
        cn,
        from_us(parts.catalog.commits.time_of(cn)),
        (*warnings, *_texts_for_names(asked.sql, views)),
        frame,
        asked.limits,
        begun,
    )


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


def _moment(parts: Parts, rows: Mapping[str, ViewRow], at: At) -> int:
    """The cn that is asked for, or the newest that all the views have."""
    for row in rows.values():
        check_readable(row, row.cn or 0)
    if at is not None:
        return resolve(parts.catalog, at)
    newest = {row.id: row.cn for row in rows.values() if row.cn is not None}
    return newest_state(parts.catalog.gaps, newest, parts.catalog.commits.last_cn())


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
