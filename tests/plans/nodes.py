"""Random graphs of nodes: blocks with folds, over relations and over each other, with plain SQL."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from steadyview.plans.fold import Fold, Key, Sum
from steadyview.plans.node import Node
from steadyview.plans.operator import Operator
from steadyview.plans.project import Project
from steadyview.plans.union_all import UnionAll
from tests.plans.trees import Growing, Tree

FOLDS = (
    "none",
    "aggregate",
    "global",
    "distinct",
    "except",
    "intersect",
    "except all",
    "intersect all",
)
_GROUPED = "CASE WHEN _rows > 0 THEN 1 ELSE 0 END"


@dataclass(frozen=True)
class PlannedNode:
    """Input `number` of those above; `reads`: what its scans read."""

    number: int
    node: Node
    sql: str
    reads: dict[int, int]


def graph(
    dice: random.Random, relations: int, nodes: int, depth: int, folds: Sequence[str] = FOLDS
) -> list[PlannedNode]:
    """Nodes numbered behind the relations, each over what stands before it; two columns each."""
    made: list[PlannedNode] = []
    for number in range(relations, relations + nodes):
        inputs = list(range(number)) + [number - 1] * (2 if number > relations else 0)
        growing = Growing(dice, inputs)
        fold = dice.choice(folds)
        if fold in ("none", "aggregate", "global", "distinct"):
            tree = growing.tree(dice.randint(0, depth))
            node, sql = over(dice, fold, tree)
        else:
            sides = growing.tree(dice.randint(0, depth)), growing.tree(dice.randint(0, depth))
            node, sql = _set_operation(dice, fold, *sides)
        made.append(PlannedNode(number, node, sql, dict(growing.reads)))
    return made


def _two(dice: random.Random, operator: Operator) -> list[str]:
    return [dice.choice(operator.columns), dice.choice(operator.columns)]


def over(dice: random.Random, fold: str, tree: Tree) -> tuple[Node, str]:
    a, b = _two(dice, tree.operator)
    if fold == "none":
        block = Project(tree.operator, (("c0", a), ("c1", b)))
        return Node(block), f"SELECT {a} AS c0, {b} AS c1 FROM ({tree.sql})"
    if fold == "distinct":
        keys = (Key("g0", a), Key("g1", b))
        outputs = (("c0", "g0"), ("c1", "g1"))
        return (
            Node(tree.operator, Fold(keys, (), outputs, _GROUPED)),
            f"SELECT DISTINCT {a} AS c0, {b} AS c1 FROM ({tree.sql})",
        )
    sums = (
        Sum("s0", f"COALESCE({b}, 0)"),
        Sum("s1", f"CASE WHEN {b} IS NULL THEN 0 ELSE 1 END"),
    )
    shown, plain = dice.choice(
        (
            ("CASE WHEN s1 > 0 THEN s0 END", f"SUM({b})"),
            ("_rows", "COUNT(*)"),
            ("s1", f"COUNT({b})"),
            ("CASE WHEN s1 > 0 THEN s0 * 10 / s1 END", f"SUM({b}) * 10 / COUNT({b})"),
        )
    )
    if fold == "global":
        other, its_plain = dice.choice((("s1", f"COUNT({b})"), ("_rows", "COUNT(*)")))
        made = Fold((), sums, (("c0", shown), ("c1", other)), "1")
        return Node(
            tree.operator, made
        ), f"SELECT {plain} AS c0, {its_plain} AS c1 FROM ({tree.sql})"
    key = dice.choice((a, a, f"COALESCE({a}, 7)"))
    having = dice.choice((None, None, ("_rows > 1", "COUNT(*) > 1"), ("s1 = 1", f"COUNT({b}) = 1")))
    made = Fold(
        (Key("g0", key),), sums, (("c0", "g0"), ("c1", shown)), _GROUPED, having and having[0]
    )
    text = f"SELECT {key} AS c0, {plain} AS c1 FROM ({tree.sql}) GROUP BY {key}"
    return Node(tree.operator, made), text + (f" HAVING {having[1]}" if having else "")


def _set_operation(dice: random.Random, kind: str, left: Tree, right: Tree) -> tuple[Node, str]:
    times = {
        "except": "CASE WHEN l > 0 AND r = 0 THEN 1 ELSE 0 END",
        "intersect": "CASE WHEN l > 0 AND r > 0 THEN 1 ELSE 0 END",
        "except all": "GREATEST(l - r, 0)",
        "intersect all": "LEAST(l, r)",
    }[kind]
    parts, texts = [], []
    for side, counts in ((left, ("1", "0")), (right, ("0", "1"))):
        a, b = _two(dice, side.operator)
        name = "l" if side is left else "r"
        outputs = (
            (f"{name}0", a),
            (f"{name}1", b),
            (f"{name}2", counts[0]),
            (f"{name}3", counts[1]),
        )
        parts.append(Project(side.operator, outputs))
        texts.append(f"SELECT {a} AS c0, {b} AS c1 FROM ({side.sql})")
    block = UnionAll(tuple(parts), ("u0", "u1", "u2", "u3"))
    sums = (Sum("l", "u2"), Sum("r", "u3"))
    fold = Fold((Key("g0", "u0"), Key("g1", "u1")), sums, (("c0", "g0"), ("c1", "g1")), times)
    word, _, every = kind.partition(" ")
    if every:
        number = "ROW_NUMBER() OVER (PARTITION BY c0, c1) AS n"
        texts = [f"SELECT c0, c1, {number} FROM ({t})" for t in texts]
    sql = f"SELECT c0, c1 FROM ({texts[0]} {word.upper()} {texts[1]})"
    return Node(block, fold), sql
