"""Random SELECT texts: what Spark is given, and what SQLite reads as the same.

A text is made of a list of numbers, one per decision, the simplest alternative first: with zeros in
the place of numbers it becomes simpler, which is how a failing one is made small.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")


@dataclass
class Decisions:
    """Numbers, one per decision; zero when they run out."""

    numbers: list[int]
    at: int = 0

    def choice(self, options: Sequence[T]) -> T:
        number = self.numbers[self.at] if self.at < len(self.numbers) else 0
        self.at += 1
        return options[number % len(options)]


def drawn(dice: random.Random, count: int = 200) -> Decisions:
    return Decisions([dice.randrange(1 << 16) for _ in range(count)])


@dataclass(frozen=True)
class Text:
    """A query of columns c0, c1, ... or a part of one; `lite` is for SQLite."""

    spark: str
    lite: str
    width: int = 0


@dataclass
class Writer:
    """Writes texts over relations r0, r1, ... of columns c0 and c1."""

    dice: Decisions
    relations: int
    aliases: int = 0
    ctes: list[tuple[str, int]] = field(default_factory=list)

    def view(self, depth: int) -> Text:
        """A whole query, perhaps with WITH."""
        clauses = []
        if depth and self.dice.choice((False, False, True)):
            for number in range(self.dice.choice((1, 2))):
                body = self.query(depth - 1, self.dice.choice((1, 2)))
                name = f"w{number}"
                clauses.append(Text(f"{name} AS ({body.spark})", f"{name} AS ({body.lite})"))
                self.ctes.append((name, body.width))
        body = self.query(depth, self.dice.choice((1, 2, 3)))
        if not clauses:
            return body
        spark = f"WITH {', '.join(c.spark for c in clauses)} {body.spark}"
        lite = f"WITH {', '.join(c.lite for c in clauses)} {body.lite}"
        return Text(spark, lite, body.width)

    def query(self, depth: int, width: int) -> Text:
        kinds = ("plain", "plain", "plain", "grouped", "grouped", "distinct", "set", "constant")
        kind = self.dice.choice(kinds if depth else ("plain", "plain", "grouped", "distinct"))
        if kind == "set":
            return self._set_operation(depth, width)
        if kind == "grouped":
            return self._grouped(depth, width)
        if kind == "constant":
            return self._constant(width)
        return self._plain(depth, width, "DISTINCT " if kind == "distinct" else "")

    # --- SELECT ---

    def _plain(self, depth: int, width: int, distinct: str) -> Text:
        tables, columns = self._from(depth)
        chosen = [self._value(columns, depth) for _ in range(width)]
        where = self._where(columns, depth)
        return _select(distinct, chosen, tables, where)

    def _grouped(self, depth: int, width: int) -> Text:
        tables, columns = self._from(depth)
        where = self._where(columns, depth)
        keys = [self._scalar(columns) for _ in range(self.dice.choice((1, 0, 2)))]
        having = self.dice.choice((None, None, None, "COUNT(*) > 1", "COUNT(*) = 1"))
        chosen = [self._grouped_value(keys, columns, depth) for _ in range(width)]
        group = f" GROUP BY {', '.join(keys)}" if keys else ""
        if having and depth and self.dice.choice((False, False, True)):
            sub = self._subquery(depth - 1, keys[:1] if keys and keys[0] in columns else [], 1)
            condition = self.dice.choice(("IN", "NOT IN", "EXISTS"))
            before = "" if condition == "EXISTS" else "COUNT(*) "
            tail = Text(
                f"{group} HAVING {before}{condition} ({sub.spark})",
                f"{group} HAVING {before}{condition} ({sub.lite})",
            )
        else:
            text = group + (f" HAVING {having}" if having else "")
            tail = Text(text, text)
        return _select("", chosen, tables, Text(where.spark + tail.spark, where.lite + tail.lite))

    def _grouped_value(self, keys: list[str], columns: list[str], depth: int) -> Text:
        x = self._scalar(columns)
        options = [f"MIN({x})", f"MAX({x})", f"MAX({x}) - MIN({x})"]
        options += ["COUNT(*)", f"SUM({x})", f"COUNT({x})", f"AVG({x})", f"SUM({x}) + COUNT(*)"]
        options += [f"COALESCE(SUM({x}), 0) - 1", f"CASE WHEN COUNT(*) > 1 THEN SUM({x}) END"]
        options = [*keys, *keys, *options, *(["1"] if keys else [])]
        if keys:
            options.append(f"COALESCE({keys[0]}, 5) + COUNT(*)")
        if depth and self.dice.choice((False,) * 7 + (True,)):
            inner = self._condition(columns, depth - 1)
            sql = "SUM(CASE WHEN {} THEN 1 ELSE 0 END)"
            return Text(sql.format(inner.spark), sql.format(inner.lite))
        value = self.dice.choice(options)
        lite = value.replace(f"AVG({x})", f"(SUM({x}) / COUNT({x}))")
        return Text(value, lite)

    def _constant(self, width: int) -> Text:
        rows = [
            [self.dice.choice(("0", "1", "NULL", "2")) for _ in range(width)]
            for _ in range(self.dice.choice((1, 2)))
        ]
        listed = [", ".join(f"{v} AS c{i}" for i, v in enumerate(row)) for row in rows]
        lite = " UNION ALL ".join(f"SELECT {row}" for row in listed)
        if self.dice.choice((False, True)):
            values = ", ".join(f"({', '.join(row)})" for row in rows)
            names = ", ".join(f"c{i}" for i in range(width))
            alias = self._alias()
            return Text(f"SELECT * FROM VALUES {values} AS {alias}({names})", lite, width)
        return Text(lite, lite, width)

    def _set_operation(self, depth: int, width: int) -> Text:
        kind = self.dice.choice(
            ("UNION ALL", "UNION", "EXCEPT", "INTERSECT", "EXCEPT ALL", "INTERSECT ALL", "MINUS")
        )
        left, right = self.query(depth - 1, width), self.query(depth - 1, width)
        listed = ", ".join(f"c{i}" for i in range(width))
        spark = f"({left.spark}) {kind} ({right.spark})"
        sides = [f"SELECT {listed} FROM ({side.lite})" for side in (left, right)]
        word, _, every = kind.partition(" ")
        word = "EXCEPT" if word == "MINUS" else word
        if every and word != "UNION":
            number = f"ROW_NUMBER() OVER (PARTITION BY {listed}) AS n"
            sides = [f"SELECT {listed}, {number} FROM ({side})" for side in sides]
        elif every:
            word = kind
        return Text(spark, f"SELECT {listed} FROM ({sides[0]} {word} {sides[1]})", width)

    # --- FROM ---

    def _from(self, depth: int) -> tuple[Text, list[str]]:
        text, columns = self._item(depth)
        for _ in range(self.dice.choice((0, 1, 1, 2)) if depth else self.dice.choice((0, 0, 1))):
            text, columns = self._joined(text, columns, depth)
        return text, columns

    def _item(self, depth: int) -> tuple[Text, list[str]]:
        alias = self._alias()
        kind = self.dice.choice(("relation", "relation", "relation", "query", "with"))
        if kind == "query" and depth:
            inner = self.query(depth - 1, self.dice.choice((2, 1)))
            text = Text(
                f"({inner.spark}) {alias}", f"(SELECT * FROM ({inner.lite}) LIMIT -1) {alias}"
            )
            return text, [f"{alias}.c{i}" for i in range(inner.width)]
        if kind == "with" and self.ctes:
            name, width = self.dice.choice(self.ctes)
            lite = f"(SELECT * FROM {name} LIMIT -1) {alias}"
            return Text(f"{name} {alias}", lite), [f"{alias}.c{i}" for i in range(width)]
        name = f"r{self.dice.choice(range(self.relations))}"
        return Text(f"{name} {alias}", f"{name} {alias}"), [f"{alias}.c0", f"{alias}.c1"]

    def _joined(self, left: Text, columns: list[str], depth: int) -> tuple[Text, list[str]]:
        right, others = self._item(max(depth - 1, 0))
        kind = self.dice.choice(
            (
                "JOIN",
                "LEFT JOIN",
                ",",
                "RIGHT JOIN",
                "FULL JOIN",
                "LEFT SEMI JOIN",
                "LEFT ANTI JOIN",
            )
        )
        both = [*columns, *others]
        if kind == ",":
            return Text(
                f"{left.spark} CROSS JOIN {right.spark}", f"{left.lite} JOIN {right.lite}"
            ), both
        on = self._on(columns, others)
        if kind in ("LEFT SEMI JOIN", "LEFT ANTI JOIN"):
            return _semi(kind, left, right, on), columns
        return Text(
            f"{left.spark} {kind} {right.spark} ON {on}", f"{left.lite} {kind} {right.lite} ON {on}"
        ), both

    def _on(self, left: list[str], right: list[str]) -> str:
        parts = [f"{self.dice.choice(left)} = {self.dice.choice(right)}"]
        extra = self.dice.choice((None, None, None, "<", "own", "null safe", "expression", "other"))
        a, b = self.dice.choice(left), self.dice.choice(right)
        if extra == "<":
            parts.append(f"{a} <= {b}")
        if extra == "own":
            parts.append(self.dice.choice((f"{a} > 0", f"{b} > 0", f"{b} IS NULL", "1 = 1")))
        if extra == "null safe":
            parts.append(f"{a} IS NOT DISTINCT FROM {b}")
        if extra == "expression":
            parts = [f"{a} + 1 = {b}"]
        if extra == "other":
            parts = [f"({a} = {b} OR {a} IS NULL)"]
        return " AND ".join(parts)

    # --- expressions ---

    def _scalar(self, columns: list[str]) -> str:
        x = self.dice.choice(columns)
        y = self.dice.choice(columns)
        return self.dice.choice(
            (x, x, x, f"{x} + 1", f"COALESCE({x}, {y})", f"CASE WHEN {x} > 0 THEN {y} ELSE 3 END")
        )

    def _value(self, columns: list[str], depth: int) -> Text:
        if depth and self.dice.choice((False,) * 7 + (True,)):
            inner = self._condition(columns, depth)
            sql = "CASE WHEN {} THEN 1 ELSE 0 END"
            return Text(sql.format(inner.spark), sql.format(inner.lite))
        if depth and self.dice.choice((False,) * 9 + (True,)):
            return self._asked(columns, depth)
        sql = self._scalar(columns)
        return Text(sql, sql)

    def _where(self, columns: list[str], depth: int) -> Text:
        parts = [self._condition(columns, depth) for _ in range(self.dice.choice((0, 1, 2)))]
        if not parts:
            return Text("", "")
        spark, lite = (" AND ".join(getattr(p, k) for p in parts) for k in ("spark", "lite"))
        return Text(f" WHERE {spark}", f" WHERE {lite}")

    def _condition(self, columns: list[str], depth: int) -> Text:
        x, y = self.dice.choice(columns), self.dice.choice(columns)
        simple = (f"{x} > 0", f"{x} = {y}", f"{x} IS NOT NULL", f"{x} IN (0, 2)", f"{x} + {y} < 3")
        simple += (f"{x} BETWEEN 0 AND 1", f"NOT {x} = 1", f"{x} IS NOT DISTINCT FROM {y}")
        kind = self.dice.choice(
            ("simple", "simple", "asked", "or", "not") if depth else ("simple", "simple", "or")
        )
        if kind == "simple":
            sql = self.dice.choice(simple)
            return Text(sql, sql)
        if kind == "asked":
            return self._asked(columns, depth)
        if kind == "not":
            inner = self._condition(columns, depth - 1)
            return Text(f"NOT ({inner.spark})", f"NOT ({inner.lite})")
        sides = [self._condition(columns, max(depth - 1, 0)) for _ in range(2)]
        return Text(
            f"({sides[0].spark} OR {sides[1].spark})", f"({sides[0].lite} OR {sides[1].lite})"
        )

    def _asked(self, columns: list[str], depth: int) -> Text:
        kind = self.dice.choice(("EXISTS", "IN", "NOT EXISTS", "NOT IN", "pairs"))
        width = 2 if kind == "pairs" else 1
        sub = self._subquery(depth - 1, columns, width)
        before = ""
        if kind in ("IN", "NOT IN"):
            before = f"{self._scalar(columns)} "
        if kind == "pairs":
            before = f"({self.dice.choice(columns)}, {self.dice.choice(columns)}) "
            kind = self.dice.choice(("IN", "NOT IN"))
        return Text(f"{before}{kind} ({sub.spark})", f"{before}{kind} ({sub.lite})")

    def _subquery(self, depth: int, outer: list[str], width: int) -> Text:
        if not outer or self.dice.choice((False, False, True)):
            return self.query(max(depth, 0), width)
        tables, columns = self._from(max(depth, 0))
        chosen = [self._value(columns, 0) for _ in range(width)]
        where = self._where(columns, max(depth, 0))
        a, b = self.dice.choice(columns), self.dice.choice(outer)
        condition = self.dice.choice(
            (f"{a} = {b}", f"{a} = {b}", f"{a} < {b}", f"({a} = {b} OR {b} > 1)")
        )
        word = " AND" if where.spark else " WHERE"
        tail = f"{word} {condition}"
        return _select("", chosen, tables, Text(where.spark + tail, where.lite + tail))

    def _alias(self) -> str:
        self.aliases += 1
        return f"x{self.aliases}"


def _select(distinct: str, chosen: list[Text], tables: Text, rest: Text) -> Text:
    spark = ", ".join(f"{c.spark} AS c{i}" for i, c in enumerate(chosen))
    lite = ", ".join(f"{c.lite} AS c{i}" for i, c in enumerate(chosen))
    return Text(
        f"SELECT {distinct}{spark} FROM {tables.spark}{rest.spark}",
        f"SELECT {distinct}{lite} FROM {tables.lite}{rest.lite}",
        len(chosen),
    )


def _semi(kind: str, left: Text, right: Text, on: str) -> Text:
    """SQLite has no semi join: a join with one row asks."""
    word = "NOT " if "ANTI" in kind else ""
    asked = f"{word}EXISTS (SELECT 1 FROM {right.lite} WHERE {on})"
    return Text(
        f"{left.spark} {kind} {right.spark} ON {on}", f"{left.lite} JOIN (SELECT 1) ON {asked}"
    )
