"""What the columns of a plan are called by people: a plan has `t0_c1`, they wrote `region`.

A column of a relation is called by its name, qualified where a node reads several inputs; a column
of another view by that view's name for it; what is computed by its expression over such names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from steadyview.plans.constant import Constant
from steadyview.plans.extreme import Extreme
from steadyview.plans.fold import ROWS, Fold
from steadyview.plans.inner_join import InnerJoin
from steadyview.plans.operator import Operator
from steadyview.plans.plan import FromNode, FromRelation, PlanNode
from steadyview.plans.project import Project
from steadyview.plans.scan import Scan, column
from steadyview.plans.split_join import SplitJoin
from steadyview.plans.union_all import UnionAll
from steadyview.runtime.planning import Planned

Words = Mapping[str, str]
"""By the names that a plan has."""
_TOKEN = re.compile(r"'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|`[^`]*`|[A-Za-z_]\w*|\d\w*")
_NAME = re.compile(r"[\w.#]+")
PARTS = ("extremes", "totals")
"""Roles of nodes that are parts of a query: a group's number, its keys, then what they keep."""
_AVERAGE = re.compile(r"AVG\(SUM\((.*)\)\)", re.DOTALL)


@dataclass(frozen=True)
class ScanWords:
    """One input of a node: what it is, what it is called there, and its columns by number.

    `apart`: its columns are expressions of another node, and so are told with its name; `part`: it
    is a part of the same query.
    """

    table: str
    label: str
    columns: Mapping[int, str]
    apart: bool = False
    part: bool = False


class PlanWords:
    """The words of one node. `known`: the plans of the nodes that it reads, by name."""

    def __init__(self, plan: Planned, known: Mapping[str, Planned], labels: Words) -> None:
        assert plan.node is not None
        self._plan = plan
        self._node: PlanNode = plan.node
        self._said = dict(plan.node.words)
        self.scans = self._scans(known, labels)

    def _scans(self, known: Mapping[str, Planned], labels: Words) -> list[ScanWords]:
        found: list[ScanWords] = []
        for origin in self._node.inputs:
            if isinstance(origin, FromRelation):
                names = self._relation_columns(origin)
                table, label, apart = str(origin.relation), origin.relation.path[-1], False
                part = False
            else:
                names = _node_columns(origin, known, labels)
                table, label = origin.node, labels.get(origin.node, origin.node)
                part = _is_part(known.get(origin.node))
                apart = not part and _tells_expressions(known.get(origin.node))
            again = sum(s.label.partition("#")[0] == label for s in found)
            name = f"{label}#{again + 1}" if again else label
            found.append(ScanWords(table, name, names, apart, part))
        return found

    def _relation_columns(self, origin: FromRelation) -> dict[int, str]:
        schema = next((r for r in self._plan.relations if r.name == origin.relation), None)
        columns = schema.columns if schema is not None else ()
        return {
            i: columns[i].name if i < len(columns) else f"column {i + 1}" for i, _ in origin.types
        }

    def place(self, scan: int, number: int) -> str:
        """A column of an input, unqualified."""
        return self.scans[scan].columns.get(number, f"column {number + 1}")

    def of(self, operator: Operator) -> dict[str, str]:
        """The words of an operator's columns."""
        if isinstance(operator, Scan):
            return self._of_scan(operator)
        if isinstance(operator, Constant):
            one = operator.rows[0] if len(operator.rows) == 1 else operator.columns
            return dict(zip(operator.columns, one, strict=True))
        if isinstance(operator, Project):
            below = self.of(operator.operand)
            return {n: self._projected(n, sql, below) for n, sql in operator.outputs}
        if isinstance(operator, UnionAll):
            first = self.of(operator.parts[0])
            names = zip(operator.columns, operator.parts[0].columns, strict=True)
            return {mine: first[theirs] for mine, theirs in names}
        if isinstance(operator, Extreme):
            below = self.of(operator.operand)
            value = _bare(below[operator.column])
            return {**below, operator.name: f"{operator.function.upper()}({value})"}
        found: dict[str, str] = {}
        for operand in operator.operands:
            found.update(self.of(operand))
        if isinstance(operator, SplitJoin) and operator.kind == "mark":
            found[operator.mark] = f"[match: {self.condition(operator)}]"
        return found

    def _of_scan(self, scan: Scan) -> dict[str, str]:
        words = self.scans[scan.number]
        found = {column(scan.number, i): self.place(scan.number, i) for i in scan.used}
        if not words.apart and (len(self.scans) == 1 or words.part):
            return found
        inner = {name: text if _single(text) else f"({text})" for name, text in found.items()}
        return {name: f"{words.label}.{text}" for name, text in inner.items()}

    def _projected(self, name: str, sql: str, below: Words) -> str:
        return said(self._said.get(name, sql), below)

    def condition(self, join: InnerJoin | SplitJoin) -> str:
        """What a join's sides are compared by; empty where every row meets every row."""
        words = {**self.of(join.left), **self.of(join.right)}
        sign = {False: "=", True: "<=>"}
        parts = [f"{words[e.left]} {sign[e.null_safe]} {words[e.right]}" for e in join.equalities]
        if join.condition:
            parts.append(said(join.condition, words))
        return " AND ".join(parts)

    def kept(self, fold: Fold) -> dict[str, str]:
        """Keys, sums and aggregates of a fold."""
        below = self.of(self._node.node.block)
        keys = {k.name: said(k.sql, below) for k in fold.keys}
        sums = {s.name: said(self._said.get(s.name, s.sql), below) for s in fold.all_sums}
        sums[ROWS] = "COUNT(*)"
        values = {n: said(self._said.get(n, sql), sums) for n, sql in fold.values}
        return {**keys, **sums, **values}

    def outputs(self) -> list[str]:
        """What the node shows, column by column."""
        fold = self._node.fold
        if fold is None:
            words = self.of(self._node.node.block)
            return [words[name] for name in self._node.node.block.columns]
        words = self.kept(fold)
        return [said(sql, words) for _, sql in fold.outputs]


def _node_columns(
    origin: FromNode, known: Mapping[str, Planned], labels: Words
) -> dict[int, str]:
    """What the columns of another node are called: a view's own names, a hidden one's meanings."""
    below = known.get(origin.node)
    if below is None:
        return {i: f"column {i + 1}" for i, _ in origin.types}
    if below.node is not None and below.hidden:
        names: Sequence[str] = PlanWords(below, known, labels).outputs()
        if below.node.role in PARTS:
            names = ["group", *names[1:]]
    else:
        names = [name for name, _ in below.columns]
    return {i: names[i] for i, _ in origin.types}


def _tells_expressions(plan: Planned | None) -> bool:
    return plan is not None and plan.hidden


def _is_part(plan: Planned | None) -> bool:
    return plan is not None and plan.node is not None and plan.node.role in PARTS


def said(sql: str, words: Words) -> str:
    """An expression of a plan in people's words.

    >>> said("t0_c1 * 2 > LENGTH('t0_c1')", {"t0_c1": "a + b"})
    "(a + b) * 2 > LENGTH('t0_c1')"
    """
    alone = words.get(sql)
    if alone is not None:
        return alone

    def word(found: re.Match[str]) -> str:
        text = words.get(found[0])
        if text is None:
            return found[0]
        before, after = sql[: found.start()], sql[found.end() :]
        enclosed = before.endswith("(") and after.startswith(")")
        return text if enclosed or _single(text) else f"({text})"

    return _AVERAGE.sub(r"AVG(\1)", _TOKEN.sub(word, sql))


def _bare(text: str) -> str:
    return text[1:-1] if text.startswith("(") and _closes(text, 0) == len(text) - 1 else text


def _single(text: str) -> bool:
    """Whether it can stand inside another expression without brackets."""
    if _NAME.fullmatch(text) or re.fullmatch(r"'(?:\\.|[^'\\])*'|\[.*\]", text, re.DOTALL):
        return True
    call = re.match(r"[\w.#]*\(", text)
    return call is not None and _closes(text, call.end() - 1) == len(text) - 1


def _closes(text: str, start: int) -> int:
    """Where the bracket that opens at `start` is closed; -1: nowhere."""
    depth = 0
    for at in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at
    return -1
