"""Random SELECT texts, read by the product's reader, kept over a history, judged at every cn."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass

from steadyview.changes import Column, RelationName, RelationSchema
from steadyview.errors import ViewRefused
from steadyview.plans.aggregates import ArgumentTypes, Grouped, GroupedTypes
from steadyview.plans.draft import Draft, DraftInput, PlanDraft, RelationInput, ViewInput
from steadyview.plans.extremes import extremes, values_of
from steadyview.plans.node import Node
from steadyview.views.parse import ViewText
from steadyview.views.plan import plan_view
from tests.plans.batches import Graph
from tests.plans.histories import History, Row, history
from tests.plans.nodes import PlannedNode
from tests.plans.sources import COLUMNS
from tests.plans.sqlite_engine import Engine, SqliteDialect
from tests.plans.texts import Decisions, Text, Writer

RELATIONS = [
    RelationSchema(RelationName(f"r{i}", ()), tuple(Column(c, "BIGINT") for c in COLUMNS))
    for i in range(3)
]


@dataclass(frozen=True)
class Case:
    """A text and a history, from decisions and a seed."""

    decisions: tuple[int, ...]
    depth: int
    seed: int

    def past(self) -> History:
        return history(random.Random(self.seed))

    def text(self) -> Text:
        return Writer(Decisions(list(self.decisions)), len(self.past().changes)).view(self.depth)


def case(seed: int, depth: int) -> Case:
    dice = random.Random(seed)
    return Case(tuple(dice.randrange(1 << 16) for _ in range(150)), depth, seed)


def wrong(tried: Case) -> str | None:
    """What is wrong with what is kept of the text; None if nothing is, or if it is refused."""
    try:
        return wrong_text(tried.text(), tried.seed)
    except ViewRefused as refused:
        return None if refused.code == "SUBQUERY" else f"{refused}\n{tried.text().spark}"


def wrong_text(
    text: Text, seed: int, past: History | None = None, keeping: type[Graph] = Graph
) -> str | None:
    """What is wrong with what is kept of the text over a history; without, the seed makes it."""
    past = past or history(random.Random(seed))
    plan = plan_view(ViewText("v", text.spark), RELATIONS, {}, {})
    dice = random.Random(seed)
    nodes = planned(plan, len(past.changes))
    cuts = sorted({dice.randint(0, past.last) for _ in range(3)} | {past.last})
    kept = keeping(dice, nodes, past)
    kept.run(cuts)
    for cn in range(cuts[0], past.last + 1):
        found, right = kept.kept[nodes[-1].number].at(cn), recomputed(text.lite, past, cn)
        if found != right:
            return (
                f"at cn {cn}: {dict(found)} instead of {dict(right)}\n"
                f"{text.spark}\n{text.lite}\n{past.changes}\n{plan}"
            )
    return None


def refused(tried: Case) -> bool:
    try:
        plan_view(ViewText("v", tried.text().spark), RELATIONS, {}, {})
    except ViewRefused:
        return True
    return False


def planned(plan: PlanDraft, relations: int) -> list[PlannedNode]:
    """The drafts as nodes over whole numbers, numbered behind the relations."""
    made: list[PlannedNode] = []
    numbers: list[int] = []
    for draft in plan.drafts:
        reads = _reads(draft, numbers)
        grouped = draft.grouped
        if grouped is not None and grouped.extremes:
            values = ["BIGINT" for _ in values_of(grouped)]
            found = extremes(grouped, _types(grouped), values, SqliteDialect())
            first = relations + len(made)
            for fold in found.folds:
                node = Node(draft.block, fold)
                made.append(PlannedNode(relations + len(made), node, "", reads))
            above = {scan: first + place for scan, place in enumerate(found.reads)}
            made.append(PlannedNode(relations + len(made), Node(found.block), "", above))
        else:
            fold = None if grouped is None else grouped.fold(_types(grouped))
            node = Node(draft.block, fold)
            made.append(PlannedNode(relations + len(made), node, "", reads))
        numbers.append(made[-1].number)
    return made


def _reads(draft: Draft, numbers: list[int]) -> dict[int, int]:
    found = {}
    for scan, read in enumerate(draft.inputs):
        assert not isinstance(read, ViewInput)
        if isinstance(read, RelationInput):
            found[scan] = int(read.relation.source[1:])
        if isinstance(read, DraftInput):
            found[scan] = numbers[read.place]
    return found


def _types(grouped: Grouped) -> GroupedTypes:
    arguments = tuple(ArgumentTypes("BIGINT", "BIGINT", "BIGINT") for _ in grouped.arguments)
    return GroupedTypes(tuple("BIGINT" for _ in grouped.keys), arguments)


def recomputed(sql: str, past: History, cn: int) -> Counter[Row]:
    """The rows of the text at cn, by SQLite alone."""
    engine = Engine()
    for relation in past.changes:
        engine.put(f"r{relation}", COLUMNS, list(past.at(relation, cn).elements()))
    return Counter(engine.rows(sql))


def shrunk(tried: Case) -> Case:
    """A smaller case that is wrong too: numbers cut away, or made zero."""
    size = len(tried.decisions)
    step = size // 2
    while step:
        at = 0
        while at < len(tried.decisions):
            numbers = list(tried.decisions)
            for smaller in (
                numbers[:at] + numbers[at + step :],
                numbers[:at] + [0] * len(numbers[at : at + step]) + numbers[at + step :],
            ):
                other = Case(tuple(smaller), tried.depth, tried.seed)
                if smaller != numbers and _fails(other):
                    tried = other
                    break
            at += step
        step //= 2
    return tried


def _fails(tried: Case) -> bool:
    try:
        return wrong(tried) is not None
    except Exception:  # noqa: BLE001 - whatever it is, it is wrong
        return True
