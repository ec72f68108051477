"""A SELECT that only chooses from groups is one node with them: their outputs, shown otherwise.

project(filter(fold))  =  the fold, with other outputs and a further HAVING
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from steadyview.plans.draft import Draft, DraftInput
from steadyview.plans.filter import Filter
from steadyview.plans.project import Project
from steadyview.plans.scan import Scan, column
from steadyview.views.dialect import parsed, written
from steadyview.views.trees import substituted, unbracketed


def fused(drafts: tuple[Draft, ...]) -> tuple[Draft, ...]:
    """The drafts with each such SELECT put into the groups that only it reads."""
    for place, draft in enumerate(drafts):
        below = _only_input(draft)
        if below is None or drafts[below].grouped is None or _readers(drafts, below) > 1:
            continue
        merged = _merged(draft, drafts[below])
        kept = [*drafts[:place], merged, *drafts[place + 1 :]]
        del kept[below]
        return fused(tuple(_moved(d, below) for d in kept))
    return drafts


def _only_input(draft: Draft) -> int | None:
    """The draft that this one does nothing but choose from."""
    operator = draft.block
    if draft.grouped is not None or not isinstance(operator, Project):
        return None
    below = operator.operand.operand if isinstance(operator.operand, Filter) else operator.operand
    only = draft.inputs[0] if len(draft.inputs) == 1 else None
    return only.place if isinstance(below, Scan) and isinstance(only, DraftInput) else None


def _readers(drafts: tuple[Draft, ...], place: int) -> int:
    return sum(i == DraftInput(place) for draft in drafts for i in draft.inputs)


def _merged(draft: Draft, below: Draft) -> Draft:
    grouped, operator = below.grouped, draft.block
    assert grouped is not None
    assert isinstance(operator, Project)
    values = {column(0, i): expression(sql) for i, (_, sql) in enumerate(grouped.outputs)}
    outputs = tuple((name, _over(sql, values)) for name, sql in operator.outputs)
    conditions = [f"({grouped.having})"] if grouped.having else []
    if isinstance(operator.operand, Filter):
        conditions.append(f"({_over(operator.operand.condition, values)})")
    having = " AND ".join(conditions) or None
    return Draft(
        below.block, below.inputs, replace(grouped, outputs=outputs, having=having), draft.says
    )


def _over(sql: str, values: dict[str, exp.Expression]) -> str:
    return written(unbracketed(substituted(expression(sql), values)))


def expression(sql: str) -> exp.Expression:
    """The tree of a bound expression's text."""
    found: exp.Expression = parsed(f"SELECT {sql}").expressions[0]
    found.pop()
    return found


def _moved(draft: Draft, gone: int) -> Draft:
    """With the places behind `gone` one less."""
    inputs = tuple(
        DraftInput(i.place - 1) if isinstance(i, DraftInput) and i.place > gone else i
        for i in draft.inputs
    )
    return replace(draft, inputs=inputs)
