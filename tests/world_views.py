"""Generated view texts: chains, stars, trees, cycles, self-joins, cross joins, filters, groups."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
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
class Place:
    """One occurrence in FROM: a table, or a query over one with a filter of its own."""

    alias: str
    schema: RelationSchema
    style: str = "table"
    inner: str | None = None

    def columns(self, kind: str) -> list[str]:
        return [f"{self.alias}.{c.name}" for c in self.schema.columns if c.type == kind]

    @property
    def query(self) -> str:
        return f"SELECT * FROM {self.schema.name} AS {self.alias} WHERE {self.inner}"

    @property
    def text(self) -> str:
        written = {"table": str(self.schema.name), "subquery": f"({self.query})"}
        return f"{written.get(self.style, f'w_{self.alias}')} AS {self.alias}"


@dataclass(frozen=True)
class Condition:
    """A condition and the occurrences it speaks of, by number."""

    sql: str
    over: frozenset[int]

    @property
    def last(self) -> int:
        return max(self.over, default=0)


@dataclass(frozen=True)
class Call:
    """An aggregate function and its argument; COUNT without one is COUNT(*)."""

    function: str
    argument: str | None = None

    @property
    def text(self) -> str:
        return f"{self.function}({self.argument or '*'})"


@dataclass(frozen=True)
class ViewText:
    """A view: its parts, and its SELECT. Group keys and calls are those of an aggregate view.

    `state` (aggregate views only) selects per group what the view maintains: the keys, COUNT(*),
    then COUNT and SUM for each of `arguments` (0 for one that is only counted). AVG is there as
    these two, so that no recomputation needs to agree on the type of a division.
    """

    sql: str
    places: tuple[Place, ...] = ()
    conditions: tuple[Condition, ...] = ()
    outputs: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    state: str | None = None

    @property
    def arguments(self) -> dict[str, bool]:
        """The aggregated expressions in order of appearance; whether any call sums them."""
        used: dict[str, bool] = {}
        for call in self.calls:
            if call.argument is not None:
                summed = call.function in ("SUM", "AVG")
                used[call.argument] = used.get(call.argument, False) or summed
        return used


def view_text(choices: Choices, schemas: Sequence[RelationSchema]) -> ViewText:
    """A view over these relations, each used any number of times."""
    places = tuple(_place(choices, schemas, i) for i in range(choices.pick(SIZES)))
    conditions = (*_links(choices, places), *_further(choices, places))
    view = ViewText("", places, conditions)
    body = _body(choices, places, conditions)
    if choices.chance(40):
        return _grouped(choices, view, body)
    outputs = tuple(_output(choices, places) for _ in range(choices.number(1, 4)))
    return replace(view, outputs=outputs, sql=_select(view, _named(outputs), body))


def _place(choices: Choices, schemas: Sequence[RelationSchema], number: int) -> Place:
    schema, alias = choices.pick(schemas), ALIASES[number]
    style = choices.pick(["table"] * 8 + ["subquery", "with"])
    if style == "table":
        return Place(alias, schema)
    return Place(alias, schema, style, _filter(choices, alias, schema))


def _select(view: ViewText, columns: Sequence[str], body: str) -> str:
    commons = [f"w_{p.alias} AS ({p.query})" for p in view.places if p.style == "with"]
    common = f"WITH {', '.join(commons)} " if commons else ""
    return f"{common}SELECT {', '.join(columns)} {body}"


def _named(columns: Sequence[str]) -> list[str]:
    return [f"{column} AS o{i}" for i, column in enumerate(columns)]


def _links(choices: Choices, places: Sequence[Place]) -> list[Condition]:
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


def _equality(choices: Choices, places: Sequence[Place], i: int, j: int) -> Condition:
    kind = "BIGINT"
    if places[i].columns("STRING") and places[j].columns("STRING") and choices.chance(30):
        kind = "STRING"
    sides = [choices.pick(places[i].columns(kind)), choices.pick(places[j].columns(kind))]
    if choices.chance(30):
        sides.reverse()
    return Condition(" = ".join(sides), frozenset({i, j}))


def _further(choices: Choices, places: Sequence[Place]) -> list[Condition]:
    """Cycles, non-equi residuals, filters, constants."""
    return [_one_further(choices, places) for _ in range(choices.pick([0, 1, 0, 2, 3]))]


def _one_further(choices: Choices, places: Sequence[Place]) -> Condition:
    i, j = (choices.number(0, len(places) - 1) for _ in range(2))
    kind = choices.pick(["filter", "residual", "equality", "residual", "filter", "constant"])
    if kind == "constant" and choices.chance(30):
        return Condition(choices.pick(["1 < 2", "NULL IS NULL", "1 + 1 = 2"]), frozenset())
    if kind == "filter" or i == j:
        return Condition(_filter(choices, places[i].alias, places[i].schema), frozenset({i}))
    if kind == "equality":
        return _equality(choices, places, i, j)
    return Condition(_residual(choices, places[i], places[j]), frozenset({i, j}))


def _filter(choices: Choices, alias: str, schema: RelationSchema) -> str:
    column = choices.pick(schema.columns)
    x = f"{alias}.{column.name}"
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


def _residual(choices: Choices, left: Place, right: Place) -> str:
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


def _body(choices: Choices, places: Sequence[Place], conditions: Sequence[Condition]) -> str:
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


def _output(choices: Choices, places: Sequence[Place]) -> str:
    place = choices.pick(places)
    if choices.chance(50):
        return f"{place.alias}.{choices.pick(place.schema.columns).name}"
    return _expression(choices, places)


def _expression(choices: Choices, places: Sequence[Place]) -> str:
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


def _grouped(choices: Choices, view: ViewText, body: str) -> ViewText:
    keys = [_output(choices, view.places) for _ in range(choices.pick([1, 2, 0]))]
    calls = tuple(_call(choices, view.places) for _ in range(choices.number(1, 3)))
    grouped = replace(view, keys=tuple(dict.fromkeys(keys)), calls=calls)
    tail = f"{body} GROUP BY {', '.join(grouped.keys)}" if keys else body
    shown = _named([*grouped.keys, *(call.text for call in calls)])
    kept = [*grouped.keys, "COUNT(*)"]
    for argument, summed in grouped.arguments.items():
        kept += [f"COUNT({argument})", f"SUM({argument})" if summed else "0"]
    return replace(grouped, sql=_select(view, shown, tail), state=_select(view, kept, tail))


def _call(choices: Choices, places: Sequence[Place]) -> Call:
    function = choices.pick(["COUNT", "SUM", "AVG"])
    if function != "COUNT":
        return Call(function, _expression(choices, places))
    return Call(function, None if choices.chance(60) else _output(choices, places))
