"""What the engines spell differently. Everything else in a statement is SQL that all of them read.

The product's statements are for Spark. The simulator and tests run the same statements in an engine
inside the process, tens of thousands of them; only these few words differ there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Protocol

_SCALE = re.compile(r",\s*(\d+)\)")
_KEPT_SCALE = 6
"""Digits behind the point that Spark never cuts from a product of decimals."""

Piece = Mapping[str, str]
"""One of the rows that take a row's place: names and what they stand for."""


class Dialect(Protocol):
    """The words of one engine."""

    @property
    def nested(self) -> bool:
        """Whether a part of a statement stands inside the one above; else it has a name."""

    @property
    def row_number(self) -> str:
        """A number that no two rows of one input share."""

    def exploded(self, rows: str, kept: Sequence[str], pieces: Sequence[Piece]) -> str:
        """A SELECT with, for every row of `rows` (a FROM item), one row per piece.

        Each has the columns `kept` and those of the piece.
        """

    def times(self, value: str, type_: str) -> str:
        """`value`, of the type, `_d` times: exactly."""

    def cut(self, rows: str, keys: Sequence[str], kept: Sequence[str]) -> str:
        """A SELECT of the versions `rows`, cut wherever one of the same key starts or ends.

        It has the columns `kept`, `_from` and `_to`, which are those of the piece.
        """

    def number(self, columns: Sequence[str]) -> str:
        """A whole number made of the columns' values, never NULL; equal rows have equal ones."""


class Spark:
    """Spark SQL.

    Parts are nested: Spark resolves names of WITH one after the other, in a round of all its rules
    each, which took most of the time of a small statement.
    """

    nested = True
    row_number = "MONOTONICALLY_INCREASING_ID()"

    def exploded(self, rows: str, kept: Sequence[str], pieces: Sequence[Piece]) -> str:
        """By one generator: a UNION ALL would compute the rows once a piece."""
        structs = ", ".join(
            "NAMED_STRUCT(" + ", ".join(f"'{name}', {sql}" for name, sql in piece.items()) + ")"
            for piece in pieces
        )
        names = ", ".join(pieces[0])
        listed = ", ".join([*kept, *pieces[0]])
        return (
            f"SELECT {listed} FROM {rows} LATERAL VIEW INLINE(ARRAY({structs})) _pieces AS {names}"
        )

    def times(self, value: str, type_: str) -> str:
        """A product of decimals keeps six digits behind the point; of more, values are added."""
        scale = int(found[1]) if (found := _SCALE.search(type_)) else 0
        if not type_.startswith("DECIMAL"):
            return f"{value} * _d"
        if scale <= _KEPT_SCALE:
            return f"CAST({value} * CAST(_d AS DECIMAL(19,0)) AS {type_})"
        zero = f"CAST(0 AS {type_})"
        added = f"AGGREGATE(SEQUENCE(1L, ABS(_d)), {zero}, (a, i) -> CAST(a + {value} AS {type_}))"
        return (
            f"CASE _d WHEN 1 THEN {value} WHEN -1 THEN -{value} WHEN 0 THEN {zero} "
            f"ELSE IF(_d > 0, {added}, -{added}) END"
        )

    def cut(self, rows: str, keys: Sequence[str], kept: Sequence[str]) -> str:
        """By arrays of the cuts, so that the rows are named once."""
        window = f"PARTITION BY {', '.join(keys)}" if keys else ""
        both = f"COLLECT_SET(_from) OVER ({window}), COLLECT_SET(_to) OVER ({window})"
        cuts = f"ARRAY_SORT(ARRAY_UNION({both}))"
        own = "".join(f"{c}, " for c in kept)
        pieces = "EXPLODE(SEQUENCE(1, SIZE(_cuts) - 1)) _piece AS _i"
        inside = "_from <= _cuts[_i - 1] AND _cuts[_i - 1] < _to"
        return (
            f"SELECT {own}_cuts[_i - 1] AS _from, _cuts[_i] AS _to FROM "
            f"(SELECT {own}_from, _to, {cuts} AS _cuts FROM {rows}) "
            f"LATERAL VIEW {pieces} WHERE {inside}"
        )

    def number(self, columns: Sequence[str]) -> str:
        """NULLs are told apart by their places."""
        parts = [part for c in columns for part in (c, f"{c} IS NULL")]
        return f"XXHASH64({', '.join(parts)})" if parts else "0L"
