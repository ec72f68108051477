"""Generated views and queries over the same tables, and their rows by SQLite.

Texts are near to each other by construction: the query begins with the view's tables, conditions
and keys under other aliases, and then differs a little. So many pairs are answered, and many are
just not. Values are few, with NULLs, and tables are often empty.
"""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from steadyview.changes import Column, RelationName, RelationSchema
from steadyview.views.routing import OfferedView, Routed, Unrouted, routed, routing_question

TABLES = ("r", "q")
RELATIONS = tuple(
    RelationSchema(RelationName("s", (name,)), tuple(Column(c, "BIGINT") for c in "abc"))
    for name in TABLES
)
VALUES = (None, 0, 1, 2)
AGGREGATES = ("COUNT(*)", "COUNT({0})", "SUM({0})", "AVG({0})", "MIN({0})", "MAX({0})")
Rows = Counter[tuple[Any, ...]]


@dataclass(frozen=True)
class Drawn:
    """A query by its parts; columns are written `{0}.a`, occurrence by number."""

    tables: tuple[str, ...]
    conditions: tuple[str, ...]
    keys: tuple[str, ...] | None
    outputs: tuple[str, ...]
    having: tuple[str, ...] = ()
    distinct: bool = False

    def text(self, order: Sequence[int], letters: str) -> str:
        """As SQL: occurrences in this order, called by these letters."""
        aliases = [letters[i] for i in range(len(self.tables))]
        listed = ", ".join(f"s.{self.tables[i]} AS {aliases[i]}" for i in order)
        outputs = ", ".join(f"{o} AS c{i}" for i, o in enumerate(self.outputs))
        sql = f"SELECT {'DISTINCT ' if self.distinct else ''}{outputs} FROM {listed}"
        sql += f" WHERE {' AND '.join(self.conditions)}" if self.conditions else ""
        sql += f" GROUP BY {', '.join(self.keys)}" if self.keys else ""
        sql += f" HAVING {' AND '.join(self.having)}" if self.having else ""
        return sql.format(*aliases)


@dataclass(frozen=True)
class Pair:
    """A view, a query, and what becomes of them."""

    view: str
    query: str
    width: int
    found: Routed | Unrouted


def pair(dice: random.Random) -> Pair:
    """One view and one query that is near to it."""
    view = _view(dice)
    query = _query(dice, view)
    order = dice.sample(range(len(query.tables)), len(query.tables))
    texts = view.text(range(len(view.tables)), "xy"), query.text(order, "uv")
    return judged(*texts, len(view.outputs), len(query.outputs))


def judged(view: str, query: str, shown: int, width: int) -> Pair:
    """Whether the view answers the query."""
    read = tuple(r for r in RELATIONS if f"s.{r.name.path[0]} " in view)
    asked = tuple(r for r in RELATIONS if f"s.{r.name.path[0]} " in query)
    offered = OfferedView("v", view, read, tuple((f"c{i}", "BIGINT") for i in range(shown)))
    question = routing_question(query, asked, [f"c{i}" for i in range(width)])
    return Pair(view, query, width, routed(question, offered))


class Tables:
    """The tables in a history of random changes."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._database = sqlite3.connect(":memory:")
        self._database.execute("ATTACH ':memory:' AS s")
        for name in TABLES:
            self._database.execute(f"CREATE TABLE s.{name} (a, b, c)")

    def change(self) -> None:
        """One transaction."""
        name = self._dice.choice(TABLES)
        if self._dice.random() < 0.3:
            self._database.execute(f"DELETE FROM s.{name} WHERE a IS ?", [self._value()])
        for _ in range(self._dice.randrange(4)):
            row = [self._value() for _ in range(3)]
            self._database.execute(f"INSERT INTO s.{name} VALUES (?, ?, ?)", row)

    def both(self, tried: Pair) -> tuple[Rows, Rows]:
        """What the query gives, and what the query over the view gives."""
        assert isinstance(tried.found, Routed)
        self._database.execute("DROP TABLE IF EXISTS temp.v")
        self._database.execute(f"CREATE TEMP TABLE v AS {tried.view}")
        return self._rows(tried.query), self._rows(tried.found.sql)

    def _rows(self, sql: str) -> Rows:
        return Counter(self._database.execute(sql).fetchall())

    def _value(self) -> int | None:
        return self._dice.choice(VALUES)


def right(tried: Pair, dice: random.Random, changes: int = 5) -> bool:
    """Whether both ways give the same rows after every change."""
    tables = Tables(dice)
    for _ in range(changes):
        asked, answered = tables.both(tried)
        if asked != answered:
            return False
        tables.change()
    return True


# --- texts ---------------------------------------------------------------------------------------


def _view(dice: random.Random) -> Drawn:
    tables = dice.choice((("r",), ("r",), ("r", "q"), ("r", "r")))
    conditions = tuple(_conditions(dice, tables, dice.choice((0, 0, 1, 2))))
    columns = _columns(tables)
    kind = dice.choice(("rows", "groups", "groups", "groups", "having", "distinct", "all"))
    if kind in ("rows", "distinct"):
        outputs = tuple(dice.sample(columns, dice.randint(1, len(columns))))
        return Drawn(tables, conditions, None, outputs, distinct=kind == "distinct")
    keys = () if kind == "all" else tuple(dice.sample(columns, dice.choice((1, 2, 2))))
    shown = [key for key in keys if dice.random() < 0.9]
    known = [a for a in _aggregates(dice, columns) if "DISTINCT" not in a]
    aggregates = dice.sample(known, dice.choice((2, 4, 6)))
    having = (dice.choice(("COUNT(*) > 1", "SUM({0}.a) > 0")),) if kind == "having" else ()
    return Drawn(tables, conditions, keys, (*shown, *aggregates), having)


def _query(dice: random.Random, view: Drawn) -> Drawn:
    tables = view.tables if dice.random() < 0.95 else dice.choice((("r",), ("r", "q"), ("q",)))
    kept = [c for c in view.conditions if dice.random() < 0.92] if tables == view.tables else []
    more = _conditions(dice, tables, dice.choice((0, 0, 1)))
    columns = _columns(tables)
    if tables == view.tables and view.keys and dice.random() < 0.6:
        more = [c for c in more if any(key in c for key in view.keys)]
    if tables == view.tables and (least := [o[4:-1] for o in view.outputs if "MIN(" in o]):
        more += [f"{dice.choice(least)} > 0"] if dice.random() < 0.15 else []
    conditions = (*kept, *more)
    kind = dice.choice(("rows", "groups", "groups", "groups", "distinct"))
    if kind != "groups":
        outputs = tuple(dice.sample(columns, dice.randint(1, min(2, len(columns)))))
        return Drawn(tables, conditions, None, outputs, distinct=kind == "distinct")
    pool = [*(view.keys or columns)] if tables == view.tables else columns
    keys = tuple(dice.sample(pool, dice.randint(0, min(2, len(pool)))))
    named = [o for o in view.outputs if "(" in o] if tables == view.tables else []
    aggregates = [*named, *_aggregates(dice, pool)]
    outputs = (*keys, *dice.sample(aggregates, dice.choice((1, 2))))
    having = tuple(h for h in view.having if dice.random() < 0.8)
    if dice.random() < 0.25:
        having += (dice.choice(aggregates) + " > 0",)
    return Drawn(tables, conditions, keys, outputs, having)


def _columns(tables: Sequence[str]) -> list[str]:
    return [f"{{{i}}}.{c}" for i in range(len(tables)) for c in "abc"]


def _conditions(dice: random.Random, tables: Sequence[str], many: int) -> list[str]:
    columns = _columns(tables)
    found = ["{0}.a = {1}.b"] if len(tables) > 1 and dice.random() < 0.8 else []
    for _ in range(many):
        x, y = dice.choice(columns), dice.choice(columns)
        options = (f"{x} > 0", f"{x} IS NOT NULL", f"({x} > 1 OR {x} <= 1)", f"{x} = {y}", "1 = 0")
        found.append(dice.choice(options))
    return found


def _aggregates(dice: random.Random, columns: Sequence[str]) -> list[str]:
    found = [a.format(dice.choice(columns)) for a in AGGREGATES for _ in range(2)]
    return [*found, f"COUNT(DISTINCT {dice.choice(columns)})"]
