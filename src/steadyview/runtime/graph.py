"""The whole project as a graph: relations of sources, hidden nodes, views, and who reads whom.

Everything stands in one order: what is read before who reads it, and by name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from steadyview.runtime.explain import levels, title
from steadyview.runtime.planning import Planned

FORMATS = ("text", "dot", "mermaid", "json")


@dataclass(frozen=True)
class Vertex:
    """A relation, a hidden node or a view. `title`: what a hidden node does, for people."""

    name: str
    kind: str
    reads: tuple[str, ...] = ()
    state: str | None = None
    level: str | None = None
    title: str | None = None


@dataclass(frozen=True)
class Graph:
    """What `steadyview graph` shows."""

    vertices: tuple[Vertex, ...]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"nodes": [asdict(v) for v in self.vertices]}

    def written(self, form: str) -> str:
        """In one of the formats."""
        writers = {"text": _text, "dot": _dot, "mermaid": _mermaid}
        if form == "json":
            return json.dumps(self.to_dict(), indent=2)
        return "\n".join(writers[form](self.vertices))


def graph(
    plans: Mapping[str, Planned], states: Mapping[str, str], refused: Sequence[str]
) -> Graph:
    """All plans; `states` of those that are kept, by name; views that are `refused` stand alone."""
    relations = sorted({str(r.name) for p in plans.values() for r in p.relations})
    found = {name: Vertex(name, "relation") for name in relations}
    kept_at = levels(plans)
    for plan in plans.values():
        kind = "node" if plan.hidden else "view"
        parents = (name for name in plan.parents if name in plans)
        reads = (*sorted(str(r.name) for r in plan.relations), *sorted(parents))
        state = states.get(plan.name, "not built yet")
        said = title(plan, plans) if plan.hidden else None
        found[plan.name] = Vertex(plan.name, kind, reads, state, kept_at[plan.name], said)
    found.update({name: Vertex(name, "view", state="refused") for name in refused})
    depths: dict[str, int] = {}
    ordered = sorted(found.values(), key=lambda v: (_depth(v.name, found, depths), v.kind, v.name))
    return Graph(tuple(ordered))


def _depth(name: str, found: Mapping[str, Vertex], depths: dict[str, int]) -> int:
    if name not in depths:
        depths[name] = 1 + max((_depth(r, found, depths) for r in found[name].reads), default=-1)
    return depths[name]


def _stands(vertex: Vertex) -> str:
    return ", ".join(x for x in (vertex.level, vertex.state) if x)


def _text(vertices: Sequence[Vertex]) -> list[str]:
    """One line each: what it is, where it stands, what it reads."""
    rows = [(v.kind, v.name, _stands(v), v.title or "", v.reads) for v in vertices]
    width = max((len(name) for _, name, *_ in rows), default=0)
    stands = max((len(s) for _, _, s, *_ in rows), default=0)
    return [
        f"{kind:8}  {name:{width}}  {stand:{stands}}"
        f"{'  <- ' + ', '.join(reads) if reads else ''}{'   ' + said if said else ''}".rstrip()
        for kind, name, stand, said, reads in rows
    ]


def _dot(vertices: Sequence[Vertex]) -> list[str]:
    shapes = {"relation": "cylinder", "node": "ellipse", "view": "box"}
    quoted = {v.name: json.dumps(v.name, ensure_ascii=False) for v in vertices}
    lines = ["digraph steadyview {", "  rankdir=LR;"]
    for v in vertices:
        label = json.dumps("\n".join(_label(v)), ensure_ascii=False)
        lines.append(f"  {quoted[v.name]} [shape={shapes[v.kind]}, label={label}];")
    edges = [f"  {quoted[r]} -> {quoted[v.name]};" for v in vertices for r in v.reads]
    return [*lines, *edges, "}"]


def _mermaid(vertices: Sequence[Vertex]) -> list[str]:
    brackets = {"relation": ("[(", ")]"), "node": ("([", "])"), "view": ("[", "]")}
    ids = {v.name: f"n{i}" for i, v in enumerate(vertices)}
    lines = ["flowchart LR"]
    for v in vertices:
        opening, closing = brackets[v.kind]
        # mermaid writes characters as entities between # and ;
        label = "<br/>".join(x.replace("#", "#35;").replace('"', "#quot;") for x in _label(v))
        lines.append(f'  {ids[v.name]}{opening}"{label}"{closing}')
    return [*lines, *(f"  {ids[r]} --> {ids[v.name]}" for v in vertices for r in v.reads)]


def _label(vertex: Vertex) -> list[str]:
    return [x for x in (vertex.title or vertex.name, _stands(vertex)) if x]
