"""The relation algebra on Spark: every operation adds to one SQL text, nothing runs before the end.

A partner is one scan over the files of answer and log, an answer's rows being those without a
`_count`. It is a list of rows with the interval of cns in which they hold, `(row, _n, _from, _to)`:

    answer row                      +1         for all t
    log row at s, reflected         -_count    for t < s       (taken back before it happened)
    log row at s, not reflected     +_count    for t >= s      (added from when it happened)

and is joined on `_from <= t AND t < _to`. Summed over equal rows this is R_v(t) exactly. Where one
join value has many log rows, or where every joined row must really have existed (`careful`), equal
rows are first consolidated by a running sum into versions, whose intervals do not overlap: the join
of a hot row then stays linear and no cancelling pair is ever evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from steadyview.changes import RelationName, arrow_type
from steadyview.engine.tagged_log import TaggedLog, read_column
from steadyview.views.definition import Occurrence

FOREVER = "9223372036854775807L"
_PLAIN = re.compile(r"t\d+\.c\d+ = t\d+\.c\d+")
"""A tree equality: kept outside of any CASE, so that Spark can join by hash."""
_EVENTS = """IF(_reflected,
    ARRAY(NAMED_STRUCT('_s', 0L, '_n', CAST(-_count AS BIGINT)),
          NAMED_STRUCT('_s', _cn, '_n', CAST(_count AS BIGINT))),
    ARRAY(NAMED_STRUCT('_s', COALESCE(_cn, 0L), '_n', CAST(COALESCE(_count, 1) AS BIGINT))))"""
"""The steps that a row of answer or log makes: when, and by how much."""
HOT = 32
"""Above so many log rows per join value a partner is consolidated."""


@dataclass(frozen=True)
class Answer:
    """A stored answer, and the relation's log: a temporary view over the files of both.

    The view has columns `c{i}` and, if `logged`, those of a tagged log, which are NULL in rows of
    the answer. `paths` are the answer's own files. `column`: the column by which the answer will be
    joined, None where no equality does.
    """

    view: str
    paths: tuple[str, ...]
    column: int | None = None
    logged: bool = False


@dataclass(frozen=True)
class Partner:
    """A relation at every time of the batch: the text of a subquery, and the files behind it."""

    sql: str
    paths: tuple[str, ...]


@dataclass(frozen=True)
class Partial:
    """Joined rows: a FROM text, the product of counts, the tag, and the files that seeded it."""

    source: str
    count: str
    tag: str
    paths: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sum:
    """The bag sum of complete partials."""

    terms: tuple[Partial, ...]


@dataclass(frozen=True)
class Keys:
    """Distinct values to look up."""

    values: pa.Array


Handle = Answer | Partner | Partial | Sum | Keys


@dataclass(frozen=True)
class Window:
    """The cns (after, upto] that a sweep covers."""

    after: int
    upto: int


class SparkAlgebra:
    """`maintenance.RelationAlgebra` (promises there) over the tagged logs of one batch."""

    def __init__(
        self,
        logs: Mapping[RelationName, TaggedLog],
        window: Window,
        *,
        careful: bool = False,
        compensated: bool = True,
        asking: bool = True,
    ) -> None:
        self._logs = logs
        self.window = window
        self._careful = careful
        self._compensated = compensated
        self._asking = asking

    def replaying(self) -> SparkAlgebra:
        """The same where every answer is there already: no keys are collected."""
        return SparkAlgebra(self._logs, self.window, asking=False)

    def careful(self) -> SparkAlgebra:
        """The same when replaying, every evaluated row one that really existed."""
        return SparkAlgebra(self._logs, self.window, careful=True, asking=False)

    def uncompensated(self) -> SparkAlgebra:
        """The same when replaying, taking every answer as it came, as is conventional."""
        return SparkAlgebra(self._logs, self.window, compensated=False, asking=False)

    def seed(self, occurrence: Occurrence, conditions: Sequence[str]) -> Partial:
        """The batch's own log rows of the occurrence, filtered."""
        log = self._logs[occurrence.relation.name]
        within = self._within(log)
        where = self._guarded(within, [*_filters(occurrence), *conditions])
        name = occurrence.name
        rows = _select(occurrence, "CAST(_count AS BIGINT) AS _n, _cn AS _k")
        source = f"({rows} FROM {log.view} {name} WHERE {where}) {name}"
        return Partial(source, f"{name}._n", f"{name}._k", log.paths)

    def state(self, occurrence: Occurrence, partner: Partner, conditions: Sequence[str]) -> Partial:
        """R(b) itself as a partial, tagged with b: where a first state starts."""
        upto, name = self.window.upto, occurrence.name
        where = self._at(f"{upto}L", occurrence, conditions)
        rows = _select(occurrence, "_n")
        source = f"({rows} FROM {partner.sql} {name} WHERE {where}) {name}"
        return Partial(source, f"{name}._n", f"{upto}L")

    def partner(self, occurrence: Occurrence, answer: Answer) -> Partner:
        """Answer and log rows as intervals, or as versions where they would cancel too often."""
        log = self._logs.get(occurrence.relation.name)
        paths = answer.paths + (log.paths if log else ())
        if log is None or not answer.logged or not self._compensated:
            return Partner(f"({self._answer_rows(occurrence, answer)})", paths)
        hot = answer.column is not None and log.hottest(answer.column) > HOT
        text = self._versions if self._careful or hot else self._intervals
        return Partner(f"({text(occurrence, answer)})", paths)

    def keys(
        self, handles: Sequence[Partner | Partial], occurrence: Occurrence, column: int
    ) -> Keys:
        """Read from the files behind the handles: a superset, without a join."""
        if not self._asking:
            return Keys(pa.nulls(0))
        paths = dict.fromkeys(p for h in handles for p in h.paths)
        values = read_column(list(paths), column)
        distinct = pc.unique(values).drop_null()
        wanted = arrow_type(occurrence.relation.columns[column].type)
        return Keys(distinct.cast(wanted))

    def extend(
        self,
        partial: Partial,
        occurrence: Occurrence,
        partner: Partner,
        conditions: Sequence[str],
        *,
        own: bool,
    ) -> Partial:
        """One more JOIN in the text, restricted to the rows that hold at the time wanted."""
        name = occurrence.name
        time = partial.tag if own else f"{partial.tag} - 1"
        on = self._at(time, occurrence, conditions)
        source = f"{partial.source}\n  JOIN {partner.sql} {name} ON {on}"
        return Partial(source, f"{partial.count} * {name}._n", partial.tag)

    def add(self, partials: Sequence[Partial]) -> Sum:
        """The terms side by side; `statements` makes one UNION ALL of them."""
        return Sum(tuple(partials))

    def _within(self, log: TaggedLog) -> list[str]:
        """The log rows of the window; by number only where the log was tagged for another one."""
        after, upto = self.window.after, self.window.upto
        start = "_own" if log.after == after else f"_cn > {after}"
        return [start, f"_cn <= {upto}"] if log.cn_high > upto else [start]

    def _at(self, time: str, occurrence: Occurrence, conditions: Sequence[str]) -> str:
        """The partner's row holds at the time, and the conditions are met."""
        name = occurrence.name
        holds = [f"{name}._from <= {time}", f"{time} < {name}._to"]
        if self._careful:
            conditions = [*_filters(occurrence), *conditions]
        return self._guarded(holds, conditions)

    def _guarded(self, guards: Sequence[str], conditions: Sequence[str]) -> str:
        """All of them; if `careful`, an expression is not even evaluated where a guard fails.

        Spark may evaluate the parts of an AND in any order and place, but not those of a CASE.
        """
        plain = [c for c in conditions if not self._careful or _PLAIN.fullmatch(c)]
        risky = [c for c in conditions if c not in plain]
        parts = [*(f"({c})" for c in plain), *guards]
        if risky:
            then = " AND ".join(f"({c})" for c in risky)
            parts.append(f"CASE WHEN {' AND '.join(guards)} THEN {then} ELSE FALSE END")
        return " AND ".join(parts)

    def _where(self, occurrence: Occurrence) -> str:
        """The occurrence's own filter on all rows; if `careful`, it waits until a row is used."""
        if self._careful or not occurrence.filter:
            return ""
        return f" WHERE ({occurrence.filter})"

    def _answer_rows(self, occurrence: Occurrence, answer: Answer) -> str:
        rows = _select(occurrence, f"1L AS _n, 0L AS _from, {FOREVER} AS _to")
        where = self._where(occurrence)
        if answer.logged:
            where = f"{where} AND _count IS NULL" if where else " WHERE _count IS NULL"
        return f"{rows} FROM {answer.view} {occurrence.name}{where}"

    def _intervals(self, occurrence: Occurrence, answer: Answer) -> str:
        rows = _select(
            occurrence,
            "CAST(IF(_reflected, -_count, COALESCE(_count, 1)) AS BIGINT) AS _n, "
            "IF(COALESCE(_reflected, TRUE), 0L, _cn) AS _from, "
            f"IF(_reflected, _cn, {FOREVER}) AS _to",
        )
        return f"{rows} FROM {answer.view} {occurrence.name}{self._where(occurrence)}"

    def _versions(self, occurrence: Occurrence, answer: Answer) -> str:
        """Levels by a running sum: answer minus all reflected, then a step at each log row's cn."""
        events = (
            f"{_select(occurrence, 'e._s, e._n')} FROM {answer.view} {occurrence.name} "
            f"LATERAL VIEW INLINE({_EVENTS}) e AS _s, _n{self._where(occurrence)}"
        )
        columns = ", ".join(f"c{i}" for i in occurrence.columns) or "1"
        listed = "".join(f"c{i}, " for i in occurrence.columns)
        # rows of one instant are peers of the running sum; all but the last get an empty interval
        running = (
            f"SELECT {listed}SUM(_n) OVER w AS _n, _s AS _from, "
            f"LEAD(_s, 1, {FOREVER}) OVER w AS _to FROM ({events}) "
            f"WINDOW w AS (PARTITION BY {columns} ORDER BY _s)"
        )
        return f"SELECT {listed}_n, _from, _to FROM ({running}) WHERE _n <> 0 AND _from < _to"


def _select(occurrence: Occurrence, more: str) -> str:
    columns = "".join(f"{occurrence.name}.c{i}, " for i in occurrence.columns)
    return f"SELECT {columns}{more}"


def _filters(occurrence: Occurrence) -> list[str]:
    return [occurrence.filter] if occurrence.filter else []
