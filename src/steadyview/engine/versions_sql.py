"""Making versions of many rows: the rule of `plans/versions.py`, as one statement of Spark.

Every answered row is there from the beginning; every logged row changes its count at the beginning
where the answer it belongs to must be taken back or forth, and at its cn if that lies inside the
window. One running sum per row gives the versions; a row that would be below zero was there before,
unasked, which is why every row has an event at the beginning. Elsewhere steps that cancel are none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from steadyview.plans.moves import BEGINNING, CN, FOREVER, FROM, TO, N


@dataclass(frozen=True)
class AnswerView:
    """An answer: a view of its rows, and of the keys asked for (`k`) in a column; None: all."""

    rows: str
    column: str | None = None
    keys: str | None = None


def versions_sql(
    columns: Sequence[str],
    log: str | None,
    answers: Sequence[AnswerView],
    after: int,
    upto: int,
) -> str:
    """The versions of the columns over (after, upto]; `log` has them, `_count`, `_cn` and P."""
    listed = "".join(f"{c}, " for c in columns)
    events = [
        f"SELECT {listed}{BEGINNING}L AS _t, 1L AS _d FROM {_fresh(columns, answers, i)}"
        for i in range(len(answers))
    ]
    if log is not None:
        events.append(_logged(listed, log, answers, after, upto))
    by = f"{listed}_t"
    partition = f"PARTITION BY {', '.join(columns)} " if columns else ""
    window = f"{partition}ORDER BY _t"
    return (
        f"WITH e AS ({' UNION ALL '.join(events)}), "
        f"s AS (SELECT {by}, SUM(_d) AS _d FROM e GROUP BY {by} "
        f"HAVING SUM(_d) <> 0 OR _t = {BEGINNING}), "
        f"l AS (SELECT {by}, SUM(_d) OVER ({window}) AS _level, "
        f"LEAD(_t) OVER ({window}) AS _next FROM s), "
        f"m AS (SELECT *, GREATEST(0L, -MIN(_level) OVER ({partition or ''})) AS _unasked FROM l) "
        f"SELECT {listed}_level + _unasked AS {N}, _t AS {FROM}, "
        f"COALESCE(_next, {FOREVER}L) AS {TO} FROM m WHERE _level + _unasked <> 0"
    )


def _fresh(columns: Sequence[str], answers: Sequence[AnswerView], place: int) -> str:
    """An answer's rows that belong to no earlier one."""
    rows = f"{answers[place].rows} a"
    for i, earlier in enumerate(answers[:place]):
        if earlier.column is None:
            return f"(SELECT * FROM {answers[place].rows} WHERE FALSE)"
        rows += f" LEFT ANTI JOIN {earlier.keys} k{i} ON a.{earlier.column} = k{i}.k"
    return f"(SELECT a.* FROM {rows})" if place else answers[place].rows


def _logged(listed: str, log: str, answers: Sequence[AnswerView], after: int, upto: int) -> str:
    """What each logged row changes at the beginning, and at its cn."""
    rows, own = f"{log} g", "FALSE"
    if any(a.column is None for a in answers):
        own = "TRUE"
    elif answers:
        for i, answer in enumerate(answers):
            keys = f"(SELECT DISTINCT k FROM {answer.keys}) k{i}"
            rows += f" LEFT JOIN {keys} ON g.{answer.column} = k{i}.k"
        own = " OR ".join(f"k{i}.k IS NOT NULL" for i in range(len(answers)))
    asked = (
        f"CASE WHEN NOT ({own}) THEN 0L WHEN _reflected AND {CN} > {after} THEN -_count "
        f"WHEN NOT _reflected AND {CN} <= {after} THEN _count ELSE 0L END"
    )
    inside = f"CASE WHEN {CN} > {after} AND {CN} <= {upto} THEN _count ELSE 0L END"
    first = f"NAMED_STRUCT('_t', {BEGINNING}L, '_d', CAST({asked} AS BIGINT))"
    later = f"NAMED_STRUCT('_t', {CN}, '_d', CAST({inside} AS BIGINT))"
    structs = f"ARRAY({first}, {later})"
    chosen = f"SELECT g.*, {structs} AS _events FROM {rows}"
    return (
        f"SELECT {listed}_t, _d FROM ({chosen}) LATERAL VIEW INLINE(_events) _x AS _t, _d "
        f"WHERE _t = {BEGINNING} OR _d <> 0"
    )
