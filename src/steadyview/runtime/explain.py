"""How a view is kept, for people and as data: its plan as a tree, what it keeps and asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steadyview.errors import SteadyviewError
from steadyview.plans.constant import Constant
from steadyview.plans.filter import Filter
from steadyview.plans.gather import Gather
from steadyview.plans.inner_join import InnerJoin
from steadyview.plans.lineage import Place
from steadyview.plans.links import Side, links
from steadyview.plans.operator import Operator
from steadyview.plans.plan import FromRelation, PlanNode
from steadyview.plans.project import Project
from steadyview.plans.scan import Scan
from steadyview.plans.split_join import SplitJoin
from steadyview.plans.union_all import UnionAll
from steadyview.runtime.known_columns import KnownColumns
from steadyview.runtime.planning import Planned, Refused

_JOINS = {
    "left": "left outer join",
    "full": "full outer join",
    "semi": "semi join: rows that have a partner",
    "anti": "anti join: rows that have none",
    "mark": "mark: whether a row has a partner",
}


@dataclass(frozen=True)
class Explanation:
    """What `steadyview explain` shows."""

    data: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return self.data

    @property
    def text(self) -> str:
        """Plain text."""
        return "\n".join(_lines(self.data))


def explain(
    plan: Planned, plans: Sequence[Planned | Refused], away: Mapping[str, SteadyviewError]
) -> Explanation:
    """The plan of one view. `away`: sources that do not answer now; it rests on what is recorded.

    Which indexes there are, for one, may have changed since.
    """
    known = {p.name: p for p in plans if isinstance(p, Planned)}
    found: dict[str, Any] = {
        "view": plan.name,
        "kind": plan.kind,
        "level": plan.level if plan.node is not None else "strong",
        "algorithm": plan.algorithm_name,
        "columns": [{"name": n, "type": t} for n, t in plan.columns],
        "warnings": list(plan.warnings),
    }
    if plan.node is None:
        found["relations"] = [{"table": str(r.name)} for r in plan.relations]
        if plan.refusal is not None:
            found["reason"] = {"code": plan.refusal.code, "message": plan.refusal.message}
    else:
        nodes = [*_hidden(plan, known), plan]
        found["nodes"] = [_node(p, _shared(p, plan, known)) for p in nodes]
        found["lookups"] = [x for p in nodes for x in _lookups(p)]
        found["indexes_wanted"] = _wanted(found["lookups"])
    missing = sorted(plan.sources & away.keys())
    if missing:
        found["as_recorded"] = {name: away[name].message for name in missing}
    return Explanation(found)


def _hidden(plan: Planned, known: Mapping[str, Planned]) -> list[Planned]:
    """The hidden nodes below a view, each behind those that it reads."""
    found: dict[str, Planned] = {}
    for name in plan.parents:
        below = known[name]
        if below.hidden:
            found |= {p.name: p for p in (*_hidden(below, known), below)}
    return list(found.values())


def _shared(node: Planned, view: Planned, known: Mapping[str, Planned]) -> list[str]:
    """The other views that are made of the node."""
    if not node.hidden:
        return []
    others = [p for p in known.values() if not p.hidden and p.name != view.name]
    return sorted(p.name for p in others if node in _hidden(p, known))


def _node(plan: Planned, shared: list[str]) -> dict[str, Any]:
    assert plan.node is not None
    found: dict[str, Any] = {
        "name": plan.name,
        "tree": _tree(plan.node, plan.node.node.block),
        "shared_with": shared,
        "keeps": None,
    }
    if plan.node.fold is not None:
        fold = plan.node.fold
        found["keeps"] = {
            "per": [f"{k.sql}" for k in fold.keys],
            "sums": [{"name": s.name, "type": s.type} for s in fold.all_sums],
            "shown_while": fold.having,
        }
    return found


def _tree(node: PlanNode, operator: Operator) -> dict[str, Any]:
    below = [_tree(node, o) for o in operator.operands]
    return {"operator": _said(node, operator), "inputs": below}


def _said(node: PlanNode, operator: Operator) -> str:
    if isinstance(operator, Scan):
        origin = node.inputs[operator.number]
        name = str(origin.relation) if isinstance(origin, FromRelation) else origin.node
        return f"t{operator.number} = {name}"
    if isinstance(operator, InnerJoin | SplitJoin):
        kind = "join" if isinstance(operator, InnerJoin) else _JOINS[operator.kind]
        on = [e.sql.replace("l.", "").replace("r.", "") for e in operator.equalities]
        on += [operator.condition] if operator.condition else []
        return f"{kind} on {' and '.join(on)}" if on else f"{kind}, every row with every row"
    if isinstance(operator, Filter):
        return f"where {operator.condition}"
    if isinstance(operator, Gather):
        return f"extremes per {', '.join(operator.keys) or 'all rows'}"
    if isinstance(operator, Constant):
        return f"{len(operator.rows)} constant rows"
    if isinstance(operator, UnionAll):
        return "union all"
    assert isinstance(operator, Project)
    return f"select {', '.join(sql for _, sql in operator.outputs)}"


def _lookups(plan: Planned) -> Iterator[dict[str, Any]]:
    """What a batch may ask for."""
    assert plan.node is not None
    columns = KnownColumns(plan.node, plan.relations)
    for link in links(plan.node.node.block, columns):
        for start, end in link.directed():
            if not end.scans:
                continue
            if start.keys is None or end.keys is None or not end.findable:
                for scan in sorted(end.entry):
                    yield {**_of(plan, start, scan), "by": None, "index": False}
                continue
            for place in end.keys:
                found = _of(plan, start, place.scan)
                yield {**found, "by": _column(plan, place), "index": columns.indexed(place)}


def _of(plan: Planned, start: Side, scan: int) -> dict[str, Any]:
    assert plan.node is not None
    origin = plan.node.inputs[scan]
    table = str(origin.relation) if isinstance(origin, FromRelation) else origin.node
    source = origin.relation.source if isinstance(origin, FromRelation) else None
    came = [f"t{s}" for s in sorted(start.scans)]
    return {"from": came, "to": f"t{scan}", "table": table, "source": source}


def _column(plan: Planned, place: Place) -> str:
    assert plan.node is not None
    origin = plan.node.inputs[place.scan]
    if not isinstance(origin, FromRelation):
        return f"c{place.column}"
    relation = next(r for r in plan.relations if r.name == origin.relation)
    return relation.columns[place.column].name


def _wanted(lookups: Sequence[dict[str, Any]]) -> list[dict[str, str]]:
    """The lookups that an index at the source would make cheap."""
    wanted = {
        (x["source"], x["table"].partition(".")[2], x["by"])
        for x in lookups
        if x["source"] is not None and x["by"] is not None and not x["index"]
    }
    return [{"source": s, "table": t, "column": c} for s, t, c in sorted(wanted)]


def _lines(data: dict[str, Any]) -> list[str]:
    lines = [f"view       {data['view']}", f"kept       {data['kind']} ({data['algorithm']})"]
    lines.append(f"level      {data['level']}")
    for source, fact in data.get("as_recorded", {}).items():
        lines.append(f"note       as recorded of {source}: {fact}")
    if data.get("reason"):
        lines.append(f"because    {data['reason']['code']}: {data['reason']['message']}")
    for relation in data.get("relations", []):
        lines.append(f"reads      {relation['table']}")
    for node in data.get("nodes", []):
        lines += ["", *_node_lines(node)]
    if data.get("lookups"):
        lines += ["", "lookups per batch", *map(_lookup_line, data["lookups"])]
    for w in data.get("indexes_wanted", []):
        lines.append(f"hint: an index on {w['table']} ({w['column']}) at {w['source']} would help")
    lines += [f"warning: {warning}" for warning in data["warnings"]]
    return lines


def _node_lines(node: dict[str, Any]) -> list[str]:
    shared = f"  (shared with {', '.join(node['shared_with'])})" if node["shared_with"] else ""
    lines = [f"{node['name']}{shared}"]
    if node["keeps"] is not None:
        per = ", ".join(node["keeps"]["per"]) or "all rows"
        sums = ", ".join(f"{s['name']} {s['type']}" for s in node["keeps"]["sums"])
        lines.append(f"  keeps per {per}: {sums}")
        if node["keeps"]["shown_while"]:
            lines.append(f"  shows groups while {node['keeps']['shown_while']}")
    return [*lines, *_tree_lines(node["tree"], "  ")]


def _tree_lines(tree: dict[str, Any], margin: str) -> Iterator[str]:
    yield f"{margin}{tree['operator']}"
    for below in tree["inputs"]:
        yield from _tree_lines(below, margin + "  ")


def _lookup_line(x: dict[str, Any]) -> str:
    start = "+".join(x["from"]) or "its own change"
    if x["by"] is None:
        return f"  {start} -> {x['to']}: {x['table']} whole (no column to find rows by)"
    index = "" if x["source"] is None else f" ({'indexed' if x['index'] else 'no index'})"
    return f"  {start} -> {x['to']}: {x['table']} by {x['by']}{index}"
