"""Rows that never change: VALUES, and a SELECT without FROM.

V(values)  =  each row from the beginning for ever
"""

from __future__ import annotations

from dataclasses import dataclass

from steadyview.plans.moves import BEGINNING, FOREVER, FROM, REACH, TO, N
from steadyview.plans.operator import Operator, Rendering


@dataclass(frozen=True)
class Constant:
    """Rows of expressions without columns, all of one length."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def operands(self) -> tuple[Operator, ...]:
        """Nothing."""
        return ()

    def versions(self, rendering: Rendering) -> str:
        """One SELECT a row."""
        always = (
            f"CAST(1 AS BIGINT) AS {N}, CAST({BEGINNING} AS BIGINT) AS {FROM}, {FOREVER} AS {TO}"
        )
        if rendering.flags.reach:
            always += f", CAST(-1 AS BIGINT) AS {REACH}"  # it may meet anything
        return " UNION ALL ".join(
            "SELECT "
            + "".join(f"{e} AS {c}, " for c, e in zip(self.columns, row, strict=True))
            + always
            for row in self.rows
        )
