"""Random blocks: an operator, and the plain SQL that means the same at one moment."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from steadyview.plans.constant import Constant
from steadyview.plans.filter import Filter
from steadyview.plans.inner_join import Equality, InnerJoin
from steadyview.plans.operator import Operator
from steadyview.plans.project import Project
from steadyview.plans.scan import Scan
from steadyview.plans.split_join import SplitJoin
from steadyview.plans.union_all import UnionAll

JOINS = ("inner", "left", "full", "semi", "anti", "mark", "not in")


@dataclass(frozen=True)
class Tree:
    operator: Operator
    sql: str


@dataclass
class Growing:
    """Grows trees whose scans read some of the inputs; remembers which scan reads which."""

    dice: random.Random
    inputs: Sequence[int]
    kinds: Sequence[str] = (*JOINS, "filter", "project", "union all", "constant")
    reads: dict[int, int] = field(default_factory=dict)
    names: int = 0

    def tree(self, depth: int) -> Tree:
        if depth == 0:
            return self._scan()
        kind = self.dice.choice(self.kinds)
        if kind in JOINS:
            return self._join(kind, self._below(depth), self._below(depth))
        if kind == "filter":
            below = self._below(depth)
            condition = self._condition(below.operator.columns)
            return Tree(
                Filter(below.operator, condition), f"SELECT * FROM ({below.sql}) WHERE {condition}"
            )
        if kind == "project":
            return self._project(self._below(depth))
        if kind == "union all":
            return self._union(self._below(depth), self._below(depth))
        return self._constant()

    def _below(self, depth: int) -> Tree:
        return self.tree(self.dice.choice((depth - 1, self.dice.randrange(depth))))

    def _scan(self) -> Tree:
        number = len(self.reads)
        self.reads[number] = self.dice.choice(self.inputs)
        scan = Scan(number, (0, 1))
        listed = ", ".join(f"c{i} AS t{number}_c{i}" for i in (0, 1))
        return Tree(scan, f"SELECT {listed} FROM r{self.reads[number]}")

    def _name(self) -> str:
        self.names += 1
        return f"p{self.names}"

    def _condition(self, columns: Sequence[str]) -> str:
        a, b = self.dice.choice(columns), self.dice.choice(columns)
        return self.dice.choice(
            (f"{a} > 0", f"{a} IS NULL", f"{a} <= {b}", f"COALESCE({a}, 1) <> 1", f"{a} + {b} < 3")
        )

    def _project(self, below: Tree) -> Tree:
        columns = below.operator.columns
        outputs = []
        for column in self.dice.sample(columns, min(len(columns), 2)):
            sql = self.dice.choice((column, column, f"{column} + 1", f"COALESCE({column}, 2)"))
            outputs.append((self._name(), sql))
        if len(outputs) == 1:
            outputs.append((self._name(), columns[0]))
        listed = ", ".join(f"{sql} AS {name}" for name, sql in outputs)
        return Tree(Project(below.operator, tuple(outputs)), f"SELECT {listed} FROM ({below.sql})")

    def _union(self, left: Tree, right: Tree) -> Tree:
        width = min(len(left.operator.columns), len(right.operator.columns), 2)
        names = tuple(self._name() for _ in range(width))
        parts, texts = [], []
        for side in (left, right):
            kept = self.dice.sample(side.operator.columns, width)
            renamed = tuple((self._name(), c) for c in kept)
            parts.append(Project(side.operator, renamed))
            listed = ", ".join(f"{c} AS {n}" for c, n in zip(kept, names, strict=True))
            texts.append(f"SELECT {listed} FROM ({side.sql})")
        return Tree(UnionAll(tuple(parts), names), " UNION ALL ".join(texts))

    def _constant(self) -> Tree:
        names = (self._name(), self._name())
        rows = tuple(
            tuple(self.dice.choice(("0", "1", "NULL")) for _ in names)
            for _ in range(self.dice.choice((1, 2)))
        )
        texts = [
            "SELECT " + ", ".join(f"{v} AS {n}" for v, n in zip(row, names, strict=True))
            for row in rows
        ]
        return Tree(Constant(names, rows), " UNION ALL ".join(texts))

    def _join(self, kind: str, left: Tree, right: Tree) -> Tree:
        a, b = self.dice.choice(left.operator.columns), self.dice.choice(right.operator.columns)
        equalities = [] if self.dice.random() < 0.1 else [Equality(a, b)]
        if self.dice.random() < 0.15:
            equalities.append(
                Equality(
                    self.dice.choice(left.operator.columns),
                    self.dice.choice(right.operator.columns),
                    null_safe=self.dice.random() < 0.5,
                )
            )
        condition = None
        if kind == "not in":
            kind, equalities, condition = "anti", [], f"COALESCE({a} = {b}, TRUE)"
        elif self.dice.random() < 0.3:
            x, y = self.dice.choice(left.operator.columns), self.dice.choice(right.operator.columns)
            condition = self.dice.choice((f"{x} < {y}", f"{y} > 0", f"{x} > 0", f"{x} <> {y}"))
        parts = [e.sql for e in equalities] + ([f"({condition})"] if condition else [])
        on = " AND ".join(parts) or "TRUE"
        return self._joined(kind, left, right, tuple(equalities), condition, on)

    def _joined(
        self,
        kind: str,
        left: Tree,
        right: Tree,
        equalities: tuple[Equality, ...],
        condition: str | None,
        on: str,
    ) -> Tree:
        # LIMIT -1 keeps SQLite from merging joins into a form that it then cannot read
        sides = [f"(SELECT * FROM ({side.sql}) LIMIT -1)" for side in (left, right)]
        met = f"EXISTS (SELECT 1 FROM ({right.sql}) r WHERE {on})"
        if kind == "inner":
            joined = InnerJoin(left.operator, right.operator, equalities, condition)
            return Tree(joined, f"SELECT l.*, r.* FROM {sides[0]} l JOIN {sides[1]} r ON {on}")
        mark = self._name() if kind == "mark" else ""
        split = SplitJoin(kind, left.operator, right.operator, equalities, condition, mark)
        if kind in ("left", "full"):
            joining = f"{kind.upper()} JOIN {sides[1]} r ON {on}"
            return Tree(split, f"SELECT l.*, r.* FROM {sides[0]} l {joining}")
        if kind == "mark":
            return Tree(split, f"SELECT l.*, {met} AS {mark} FROM ({left.sql}) l")
        word = "" if kind == "semi" else "NOT "
        return Tree(split, f"SELECT l.* FROM ({left.sql}) l WHERE {word}{met}")
