"""Generated view texts: chains, stars, trees, cycles, self-joins, cross joins, filters, groups."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from steadyview.changes import RelationSchema

T = TypeVar("T")
ALIASES = "abcde"
SIZES = [3, 2, 4, 1, 2, 3, 3, 4, 5]


class Choices(ABC):
    """Where a generator's decisions come from."""

    @abstractmethod
    def number(self, low: int, high: int) -> int:
        """Any integer from low to high, both included."""

    def pick(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[self.number(0, len(options) - 1)]

    def chance(self, percent: int) -> bool:
        """True in about that many of a hundred cases."""
        return self.number(0, 99) >= 100 - percent


@dataclass(frozen=True)
class ViewText:
    """A view's SELECT. For an aggregate view `state` selects, per group, what the view maintains.

    `state`: the keys, COUNT(*), then its COUNT and SUM for each of `arguments`. AVG is there as
    these two, so that no recomputation needs to agree on the type of a division.
    """

    sql: str
    keys: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    state: str | None = None


@dataclass(frozen=True)
class _Place:
    """One occurrence in FROM, and how it is written there."""

    alias: str
    schema: RelationSchema
    text: str

    def columns(self, kind: str) -> list[str]:
        return [f"{self.alias}.{c.name}" for c in self.schema.columns if c.type == kind]


@dataclass(frozen=True)
class _Condition:
    """A condition and the last occurrence it speaks of."""

    sql: str
    last: int


def view_text(choices: Choices, schemas: Sequence[RelationSchema]) -> ViewText:
    """A view over these relations, each used any number of times."""
    places, common = _places(choices, schemas)
    conditions = [*_links(choices, places), *_further(choices, places)]
    body = _body(choices, places, conditions)
    if choices.chance(40):
        return _grouped(choices, places, common, body)
    columns = [f"{_output(choices, places)} AS o{i}" for i in range(choices.number(1, 4))]
    return ViewText(f"{common}SELECT {', '.join(columns)} {body}")


def _places(choices: Choices, schemas: Sequence[RelationSchema]) -> tuple[list[_Place], str]:
    """Occurrences, and the WITH clause that some of them need."""
    places, commons = [], []
    for i in range(choices.pick(SIZES)):
        schema, alias = choices.pick(schemas), ALIASES[i]
        inner = f"SELECT * FROM {schema.name} WHERE {_filter(choices, '', schema)}"
        style = choices.pick(["table"] * 8 + ["subquery", "with"])
        if style == "with":
            commons.append(f"w{i} AS ({inner})")
        text = {"table": str(schema.name), "subquery": f"({inner})", "with": f"w{i}"}[style]
        places.append(_Place(alias, schema, f"{text} AS {alias}"))
    return places, f"WITH {', '.join(commons)} " if commons else ""


def _links(choices: Choices, places: Sequence[_Place]) -> list[_Condition]:
    """Equalities that connect each occurrence with one before it, cross joins left out."""
    shape = choices.pick(["chain", "star", "tree", "crossed"])
    links = []
    for i in range(1, len(places)):
        if shape == "crossed" and choices.chance(40):
            continue
        parent = {"chain": i - 1, "star": 0}.get(shape)
        links.append(
            _equality(choices, places, choices.number(0, i - 1) if parent is None else parent, i)
        )
    return links


def _equality(choices: Choices, places: Sequence[_Place], i: int, j: int) -> _Condition:
    kind = "BIGINT"
    if places[i].columns("STRING") and places[j].columns("STRING") and choices.chance(30):
        kind = "STRING"
    sides = [choices.pick(places[i].columns(kind)), choices.pick(places[j].columns(kind))]
    if choices.chance(30):
        sides.reverse()
    return _Condition(" = ".join(sides), max(i, j))


def _further(choices: Choices, places: Sequence[_Place]) -> list[_Condition]:
    """Cycles, non-equi residuals, filters, constants."""
    return [_one_further(choices, places) for _ in range(choices.pick([0, 1, 0, 2, 3]))]


def _one_further(choices: Choices, places: Sequence[_Place]) -> _Condition:
    i, j = (choices.number(0, len(places) - 1) for _ in range(2))
    kind = choices.pick(["filter", "residual", "equality", "residual", "filter", "constant"])
    if kind == "constant" and choices.chance(30):
        return _Condition(choices.pick(["1 < 2", "NULL IS NULL", "1 + 1 = 2"]), 0)
    if kind == "filter" or i == j:
        return _Condition(_filter(choices, f"{places[i].alias}.", places[i].schema), i)
    if kind == "equality":
        return _equality(choices, places, i, j)
    return _Condition(_residual(choices, places[i], places[j]), max(i, j))


def _filter(choices: Choices, prefix: str, schema: RelationSchema) -> str:
    column = choices.pick(schema.columns)
    x = f"{prefix}{column.name}"
    if column.type == "STRING":
        return choices.pick([f"{x} = 'a'", f"{x} IS NOT NULL", f"{x} IN ('b', 'c')", f"{x} <> 'a'"])
    return choices.pick(
        [
            f"{x} > 1",
            f"{x} IS NOT NULL",
            f"NOT ({x} BETWEEN 1 AND 2)",
            f"{x} IN (0, 1, 3)",
            f"({x} IS NULL OR {x} < 3)",
            f"{x} NOT IN (2, 5)",
            f"CASE WHEN {x} = 1 THEN 0 ELSE {x} END <= 2",
        ]
    )


def _residual(choices: Choices, left: _Place, right: _Place) -> str:
    x, y = choices.pick(left.columns("BIGINT")), choices.pick(right.columns("BIGINT"))
    return choices.pick(
        [
            f"{x} < {y}",
            f"{x} + 1 >= {y}",
            f"{x} <> {y}",
            f"({x} = {y} OR {x} IS NULL)",
            f"{x} IS NOT DISTINCT FROM {y}",
            f"{x} * {y} > {x} - 1",
            f"{y} BETWEEN {x} AND {x} + 2",
            f"{x} + {y} = 4",
        ]
    )


def _body(choices: Choices, places: Sequence[_Place], conditions: Sequence[_Condition]) -> str:
    """FROM and WHERE: a comma list, or joins that take what they can into ON."""
    if choices.chance(40):
        return _from_where([p.text for p in places], ", ", [c.sql for c in conditions])
    where: list[str] = [c.sql for c in conditions if c.last == 0]
    joined = [places[0].text]
    for i, place in enumerate(places[1:], 1):
        mine = [c.sql for c in conditions if c.last == i]
        cut = len(mine) if choices.chance(70) else min(1, len(mine))
        where += mine[cut:]
        on = " AND ".join(mine[:cut])
        joined.append(f"JOIN {place.text} ON {on}" if on else f"CROSS JOIN {place.text}")
    return _from_where(joined, " ", where)


def _from_where(tables: Sequence[str], between: str, where: Sequence[str]) -> str:
    text = f"FROM {between.join(tables)}"
    return f"{text} WHERE {' AND '.join(where)}" if where else text


def _output(choices: Choices, places: Sequence[_Place]) -> str:
    place = choices.pick(places)
    if choices.chance(50):
        return f"{place.alias}.{choices.pick(place.schema.columns).name}"
    return _expression(choices, places)


def _expression(choices: Choices, places: Sequence[_Place]) -> str:
    """A number computed from one or two occurrences."""
    x, y = (choices.pick(choices.pick(places).columns("BIGINT")) for _ in range(2))
    return choices.pick(
        [
            x,
            f"{x} + {y}",
            f"{x} * {y} - 2",
            f"CASE WHEN {x} > {y} THEN {x} ELSE -{y} END",
            f"{x} * 3",
        ]
    )


def _grouped(choices: Choices, places: Sequence[_Place], common: str, body: str) -> ViewText:
    keys = tuple(dict.fromkeys(_output(choices, places) for _ in range(choices.pick([1, 2, 0]))))
    calls = [choices.pick(["COUNT(*)", "SUM", "COUNT", "AVG"]) for _ in range(choices.number(1, 3))]
    arguments = [_expression(choices, places) for _ in calls]
    called = [c if c == "COUNT(*)" else f"{c}({x})" for c, x in zip(calls, arguments, strict=True)]
    used = [x for c, x in zip(calls, arguments, strict=True) if c != "COUNT(*)"]
    distinct = tuple(dict.fromkeys(used))
    tail = f"{body} GROUP BY {', '.join(keys)}" if keys else body
    selected = [f"{text} AS o{i}" for i, text in enumerate([*keys, *called])]
    kept = [*keys, "COUNT(*)", *(f"{f}({x})" for x in distinct for f in ("COUNT", "SUM"))]
    return ViewText(
        f"{common}SELECT {', '.join(selected)} {tail}",
        keys,
        distinct,
        f"{common}SELECT {', '.join(kept)} {tail}",
    )
