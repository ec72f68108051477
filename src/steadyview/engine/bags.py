"""Bags stored as one row per copy, and signed residuals against them, as Spark SQL.

    rows_plus(B, N)  ==  B  (+)  N          N: net signed counts per distinct row, small

Rows that N does not mention pass through without a shuffle: N is broadcast, `<=>` on every column.
A row that would be there fewer than zero times is an error, never left out: the parts do not belong
together.
"""

from __future__ import annotations

from collections.abc import Sequence


def matching(left: str, right: str, columns: Sequence[str]) -> str:
    """The condition that two rows are the same row (NULL is NULL)."""
    return " AND ".join(f"{left}.{c} <=> {right}.{c}" for c in columns) or "TRUE"


def net(residual: str, columns: Sequence[str], count: str) -> str:
    """Distinct rows of the FROM item `residual` with their summed count `_d`, zeros left out."""
    listed = ", ".join(columns)
    return (
        f"SELECT {listed}, SUM({count}) AS _d FROM {residual} GROUP BY {listed} "
        f"HAVING SUM({count}) <> 0"
    )


def rows_plus(base: str, residual: str, columns: Sequence[str], refusal: str) -> str:
    """One row per copy of B (+) N. `base` and `residual` are names; `residual` has `_d` too.

    `refusal`: an expression that raises the error for a row below zero.
    """
    listed = ", ".join(columns)
    same = matching("b", "n", columns)
    touched = (
        f"SELECT {listed}, SUM(_d) AS _d FROM ("
        f"SELECT /*+ BROADCAST(n) */ {_of('b', columns)}, 1L AS _d FROM {base} b "
        f"LEFT SEMI JOIN {residual} n ON {same} UNION ALL SELECT {listed}, _d FROM {residual}) "
        f"GROUP BY {listed} HAVING SUM(_d) <> 0"
    )
    return (
        f"SELECT /*+ BROADCAST(n) */ {_of('b', columns)} FROM {base} b "
        f"LEFT ANTI JOIN {residual} n ON {same} UNION ALL "
        f"SELECT {listed} FROM ({touched}) {copies('_d', refusal)}"
    )


def copies(count: str, refusal: str) -> str:
    """One row per copy, for rows whose count is not zero; the error where it is below.

    Without a filter on the count: Spark may move the evaluation of one behind it.
    """
    checked = f"IF({count} > 0, {count}, CAST({refusal} AS BIGINT))"
    return f"LATERAL VIEW EXPLODE(SEQUENCE(1L, {checked})) AS _copy"


def _of(alias: str, columns: Sequence[str]) -> str:
    return ", ".join(f"{alias}.{c}" for c in columns)
