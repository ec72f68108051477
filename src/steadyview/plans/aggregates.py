"""Aggregates: which sums keep them, and how they are shown of the sums.

    COUNT(*)   rows                        COUNT(x)   rows in which x is not NULL
    SUM(x)     sum of x, NULL of nothing   AVG(x)     sum / count, NULL of nothing
    tally(x)   sum of a whole number that is never NULL
    MIN, MAX   no sums keep them: a fold by group and value does (`extremes.py`)

`Grouped` is what a query asks for, before Spark has said which types its expressions have; `fold`
makes of it what is kept. A sum is kept in a type that holds it exactly, wider than the one that
people see. Equal arguments are summed once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from steadyview.plans.fold import ROWS, Fold, Key, Sum

Function = Literal["count", "sum", "avg", "tally", "min", "max", "count_distinct"]
"""`count_distinct` is asked by queries alone: no view keeps it."""
Role = Literal["groups", "distinct", "sides", "extremes"]
THERE = f"CASE WHEN {ROWS} > 0 THEN 1 ELSE 0 END"
"""A group is shown once, while it has rows."""
_INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")


@dataclass(frozen=True)
class Aggregate:
    """The value `name`: a function of an expression over the block's columns; None counts rows."""

    name: str
    function: Function
    argument: str | None = None


@dataclass(frozen=True)
class Grouped:
    """What is wanted of a block's rows per key. Names and expressions as in `Fold`, types unknown.

    `outputs`, `times` and `having` speak of the keys' and the aggregates' names.
    """

    keys: tuple[tuple[str, str], ...]
    aggregates: tuple[Aggregate, ...]
    outputs: tuple[tuple[str, str], ...]
    times: str = THERE
    having: str | None = None

    @property
    def extremes(self) -> tuple[Aggregate, ...]:
        """Those that no sum keeps."""
        return tuple(a for a in self.aggregates if a.function in ("min", "max"))

    @property
    def arguments(self) -> tuple[str, ...]:
        """The distinct expressions that are summed, in order: what types are needed of."""
        summed = (a.argument for a in self.aggregates if a.function in ("sum", "avg"))
        return tuple(dict.fromkeys(x for x in summed if x is not None))

    @property
    def role(self) -> Role:
        """What the state is there for."""
        functions = {a.function for a in self.aggregates}
        if functions & {"min", "max"}:
            return "extremes"
        if "tally" in functions:
            return "sides"
        return "groups" if functions else "distinct"

    def words(self, types: GroupedTypes) -> tuple[tuple[str, str], ...]:
        """What people call the sums, over the block's columns, and the aggregates, over the sums.

        Extremes are not among them: they are over values.
        """
        keeping = _Keeping(dict(zip(self.arguments, types.arguments, strict=True)))
        said: dict[str, str] = {ROWS: "COUNT(*)"}
        for a in self.aggregates:
            if a in self.extremes:
                continue
            said[a.name] = keeping.shown(a)
            if a.function in ("sum", "avg"):
                total = keeping.sums["sum", a.argument or ""].name
                said[a.name] = total if a.function == "sum" else f"AVG({total})"
        for (kind, argument), kept in keeping.sums.items():
            said[kept.name] = f"{'COUNT' if kind == 'count' else 'SUM'}({argument})"
        return tuple(said.items())

    def fold(self, types: GroupedTypes) -> Fold:
        """What is kept."""
        keeping = _Keeping(dict(zip(self.arguments, types.arguments, strict=True)))
        kept = [a for a in self.aggregates if a not in self.extremes]
        values = tuple((a.name, keeping.shown(a)) for a in kept)
        keys = tuple(
            Key(name, sql, type_) for (name, sql), type_ in zip(self.keys, types.keys, strict=True)
        )
        sums = tuple(keeping.sums.values())
        return Fold(keys, sums, self.outputs, self.times, self.having, values)


@dataclass(frozen=True)
class ArgumentTypes:
    """The types of an expression x, of SUM(x) and of AVG(x), as Spark has them."""

    of: str
    sum: str
    avg: str


@dataclass(frozen=True)
class GroupedTypes:
    """The types of the keys, and of the distinct summed arguments."""

    keys: tuple[str, ...]
    arguments: tuple[ArgumentTypes, ...]


def exact(type_: str) -> str | None:
    """The type that keeps a running sum of values of the type exactly; None if there is none.

    >>> exact("BIGINT"), exact("DECIMAL(10,2)"), exact("DOUBLE")
    ('DECIMAL(38,0)', 'DECIMAL(38,2)', None)
    """
    if type_ in _INTEGERS:
        return "DECIMAL(38,0)"
    decimal = _DECIMAL.fullmatch(type_)
    return f"DECIMAL(38,{decimal[2]})" if decimal else None


@dataclass
class _Keeping:
    """Collects the sums, each once."""

    types: dict[str, ArgumentTypes]
    sums: dict[tuple[str, str], Sum] = field(default_factory=dict)

    def shown(self, aggregate: Aggregate) -> str:
        """The aggregate's value, over the sums that keep it."""
        x = aggregate.argument
        if x is None:
            return ROWS
        if aggregate.function == "tally":
            return self._sum("tally", x, x, "BIGINT")
        count = self._sum("count", x, f"CASE WHEN ({x}) IS NULL THEN 0 ELSE 1 END", "BIGINT")
        if aggregate.function == "count":
            return count
        types = self.types[x]
        kept = exact(types.of)
        assert kept is not None
        total = self._sum("sum", x, f"COALESCE(CAST({x} AS {kept}), CAST(0 AS {kept}))", kept)
        if aggregate.function == "sum":
            return f"CASE WHEN {count} > 0 THEN CAST({total} AS {types.sum}) END"
        return f"CASE WHEN {count} > 0 THEN {average(total, count, types.avg)} END"

    def _sum(self, kind: str, argument: str, sql: str, type_: str) -> str:
        known = self.sums.get((kind, argument))
        if known is None:
            places = list(dict.fromkeys([*(a for _, a in self.sums), argument]))
            name = f"_{kind}_{places.index(argument)}"
            known = self.sums[kind, argument] = Sum(name, sql, type_)
        return known.name


def average(total: str, count: str, type_: str) -> str:
    """Total / count in the type of AVG; whole part and rest apart: no digit is cut early."""
    if not type_.startswith("DECIMAL"):
        return f"CAST({total} AS {type_}) / CAST({count} AS {type_})"
    n = f"CAST({count} AS DECIMAL(12,0))"
    rest = f"({total} % {n})"
    return (
        f"CAST(CAST(({total} - {rest}) / {n} AS {type_})"
        f" + CAST({rest} / {n} AS {type_}) AS {type_})"
    )
