"""Bags stored as one row per copy, and signed residuals against them, as Spark SQL.

    rows_plus(B, N)  ==  B  (+)  N          N: net signed counts per distinct row, small

Rows that N does not mention pass through without a shuffle: N is broadcast, `<=>` on every column.
A row whose count would fall below zero stops the statement: the parts do not belong together.
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


def rows_plus(base: str, residual: str, columns: Sequence[str]) -> str:
    """One row per copy of B (+) N. `base` and `residual` are names; `residual` has `_d` too."""
    listed = ", ".join(columns)
    same = matching("b", "n", columns)
    touched = (
        f"SELECT {listed}, SUM(_d) AS _d FROM ("
        f"SELECT /*+ BROADCAST(n) */ {_of('b', columns)}, 1L AS _d FROM {base} b "
        f"LEFT SEMI JOIN {residual} n ON {same} UNION ALL SELECT {listed}, _d FROM {residual}) "
        f"GROUP BY {listed}"
    )
    return (
        f"SELECT /*+ BROADCAST(n) */ {_of('b', columns)} FROM {base} b "
        f"LEFT ANTI JOIN {residual} n ON {same} UNION ALL "
        f"SELECT {listed} FROM ({touched}) LATERAL VIEW EXPLODE(SEQUENCE(1L, {checked('_d')})) "
        "AS _copy WHERE _d > 0"
    )


def checked(count: str) -> str:
    """The count itself, or an error where it is negative."""
    return (
        f"IF({count} < 0, CAST(RAISE_ERROR('steadyview: a row count fell below zero') AS BIGINT),"
        f" {count})"
    )


def _of(alias: str, columns: Sequence[str]) -> str:
    return ", ".join(f"{alias}.{c}" for c in columns)
