"""The maintenance plan of a view, for people and as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from steadyview.errors import SteadyviewError
from steadyview.maintenance.algorithms import BATCHED
from steadyview.runtime.planning import Planned
from steadyview.views.definition import Occurrence
from steadyview.views.join_tree import Edge


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


def explain(plan: Planned, away: Mapping[str, SteadyviewError]) -> Explanation:
    """The plan of one view. `away`: sources that do not answer now; it rests on what is recorded.

    Which indexes there are, for one, may have changed since.
    """
    found = _recomputed(plan) if plan.definition is None else _incremental(plan)
    missing = sorted(plan.sources & away.keys())
    if missing:
        found["as_recorded"] = {name: away[name].message for name in missing}
    return Explanation(found)


def _incremental(plan: Planned) -> dict[str, Any]:
    assert plan.definition is not None
    assert plan.tree is not None
    occurrences = plan.definition.occurrences
    return {
        "view": plan.name,
        "kind": plan.kind,
        "level": plan.level,
        "algorithm": plan.algorithm_name,
        "relations": [_relation(o) for o in occurrences],
        "lookups": [_lookup(e, occurrences) for e in plan.tree.edges],
        "join_order": [
            [occurrences[i].alias, *(occurrences[s.edge.v].alias for s in plan.tree.steps(i))]
            for i in range(len(occurrences))
        ],
        "aggregate": plan.definition.grouping is not None,
        "columns": [{"name": n, "type": t} for n, t in plan.columns],
        "indexes_wanted": _wanted(plan),
        "warnings": list(plan.warnings),
    }


def _recomputed(plan: Planned) -> dict[str, Any]:
    refusal = plan.refusal
    return {
        "view": plan.name,
        "kind": plan.kind,
        "level": "strong",
        "algorithm": "recompute",
        "reason": {"code": refusal.code, "message": refusal.message} if refusal else None,
        "relations": [{"table": str(r.name)} for r in plan.relations],
        "columns": [{"name": n, "type": t} for n, t in plan.columns],
        "warnings": list(plan.warnings),
    }


def _relation(o: Occurrence) -> dict[str, Any]:
    return {
        "alias": o.alias,
        "table": str(o.relation.name),
        "columns": [o.relation.columns[i].name for i in o.columns],
        "filtered": o.filter is not None,
    }


def _lookup(edge: Edge, occurrences: tuple[Occurrence, ...]) -> dict[str, Any]:
    here, there = occurrences[edge.u], occurrences[edge.v]
    found: dict[str, Any] = {
        "from": here.alias,
        "to": there.alias,
        "table": str(there.relation.name),
    }
    if edge.key is None:
        return {**found, "by": None, "index": False, "whole": edge.why}
    return {
        **found,
        "by": there.relation.columns[edge.key.to_column].name,
        "keys_of": here.relation.columns[edge.key.from_column].name,
        "index": edge.key.indexed,
    }


def _wanted(plan: Planned) -> list[dict[str, str]]:
    """The lookups that an index at the source would make cheap."""
    assert plan.definition is not None
    assert plan.tree is not None
    wanted = {
        (there.relation.name, there.relation.columns[e.key.to_column].name)
        for e in plan.tree.edges
        if e.key and not e.key.indexed
        for there in (plan.definition.occurrences[e.v],)
    }
    return [
        {"source": name.source, "table": ".".join(name.path), "column": column}
        for name, column in sorted(wanted)
    ]


def _lines(data: dict[str, Any]) -> list[str]:
    lines = [f"view       {data['view']}", f"kept       {data['kind']} ({data['algorithm']})"]
    lines.append(f"level      {data['level']}")
    for source, fact in data.get("as_recorded", {}).items():
        lines.append(f"note       as recorded of {source}: {fact}")
    if data.get("reason"):
        lines.append(f"because    {data['reason']['code']}: {data['reason']['message']}")
    lines.append("relations")
    for r in data["relations"]:
        columns = f"  columns {', '.join(r['columns'])}" if "columns" in r else ""
        lines.append(f"  {r.get('alias', '')} = {r['table']}{columns}".replace("   = ", "  "))
    batched = data["algorithm"] == BATCHED
    if data.get("lookups"):
        title = "lookups per batch" if batched else "lookups, as the algorithm asks for them"
        lines += [title, *_lookup_lines(data)]
        lines += ["sweeps", *_sweep_lines(data)] if batched else []
    for w in data.get("indexes_wanted", []):
        lines.append(f"hint: an index on {w['table']} ({w['column']}) at {w['source']} would help")
    lines += [f"warning: {warning}" for warning in data["warnings"]]
    return lines


def _lookup_lines(data: dict[str, Any]) -> list[str]:
    return [
        f"  {x['from']} -> {x['to']}: "
        + (
            f"{x['table']} by {x['by']} ({'indexed' if x['index'] else 'no index'})"
            if x["by"]
            else f"{x['table']} whole ({x['whole']})"
        )
        for x in data["lookups"]
    ]


def _sweep_lines(data: dict[str, Any]) -> list[str]:
    return [f"  a change of {order[0]}: {' -> '.join(order)}" for order in data["join_order"]]
