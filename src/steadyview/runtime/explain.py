"""How a view is kept, for people and as data: the tree of its plan, what it keeps and asks for.

The tree is that of the view down to tables of sources and other views. A hidden node stands in it
where it is read; a node that is read again is told by its name alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steadyview.plans.constant import Constant
from steadyview.plans.extreme import Extreme
from steadyview.plans.extremes import ONE_GROUP
from steadyview.plans.filter import Filter
from steadyview.plans.fold import Fold
from steadyview.plans.inner_join import InnerJoin
from steadyview.plans.links import Side, links
from steadyview.plans.operator import Operator, walk
from steadyview.plans.plan import FromRelation, PlanNode
from steadyview.plans.project import Project
from steadyview.plans.scan import Scan, scans
from steadyview.plans.split_join import SplitJoin
from steadyview.plans.union_all import UnionAll
from steadyview.runtime.byte_sizes import bytes_said
from steadyview.runtime.known_columns import KnownColumns
from steadyview.runtime.managers.log_views import planned_log_view
from steadyview.runtime.managers.record_view import LOG_LEVEL, LOG_WAY
from steadyview.runtime.plan_words import PARTS, PlanWords, said
from steadyview.runtime.planning import VERSIONS, Planned, rank
from steadyview.runtime.served_rows import LEVEL, WAY
from steadyview.views.parse import IMMEDIATE
from steadyview.views.record_rows import NotByRecord

Element = dict[str, Any]
Sizes = Callable[[str], dict[str, Any] | None]
"""Rows and bytes of a node's tables, by the node's name; None: it has none yet."""
_JOINS = {
    "left": "left outer join",
    "full": "full outer join",
    "semi": "semi join (rows that have a match)",
    "anti": "anti join (rows that have no match)",
    "mark": "mark (whether a row has a match)",
}
_WHY = {
    "groups": "a change is added to the sums of its group, so no other row of it is read again",
    "distinct": "a row goes when the last of its copies goes, so its copies are counted",
    "sides": "whether a row is shown depends on how often each side has it",
    "extremes": "when the least or greatest value goes, the next one must be known",
    "totals": "a change is added to the sums of its group",
}
_SIDES = ("rows on the left", "rows on the right")
_NO_KEY = "no equality of two columns to find rows by"


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
    plan: Planned, known: Mapping[str, Planned], sizes: Sizes, stands: Mapping[str, Any]
) -> Explanation:
    """The plan of one view. `known`: all plans, by name; `stands`: of when it is, and notes."""
    found: dict[str, Any] = {
        "view": plan.name,
        "kind": plan.kind,
        "level": plan.level,
        "policy": None if plan.text is None else plan.text.policy,
        "schedule": None if plan.text is None else plan.text.schedule,
        "algorithm": plan.algorithm_name,
        "served": _served(plan),
        **stands,
        "columns": [{"name": n, "type": t} for n, t in plan.columns],
        "warnings": list(plan.warnings),
    }
    if plan.node is None:
        reads = [{"operator": "table", "text": str(r.name), "inputs": []} for r in plan.relations]
        kept = {"name": plan.name, "size": sizes(plan.name)}
        found["tree"] = {"operator": "whole", "text": "its SELECT", "inputs": reads, "node": kept}
        if plan.refusal is not None:
            found["reason"] = {"code": plan.refusal.code, "message": plan.refusal.message}
        return Explanation({**found, "lookups": [], "indexes_wanted": []})
    drawing = _Drawing(plan, known, sizes)
    found["tree"] = drawing.tree(plan)
    found["lookups"] = drawing.lookups
    found["indexes_wanted"] = _wanted(drawing.lookups)
    return Explanation(found)


def _served(plan: Planned) -> dict[str, Any] | None:
    """From which store it is served, in which way, and what that promises."""
    if plan.text is None or plan.text.serve is None:
        return None
    key = list(plan.serve_key)
    way, level, why = WAY, LEVEL, None
    try:
        if planned_log_view(plan) is not None:
            way, level = LOG_WAY, LOG_LEVEL
    except NotByRecord as error:
        why = str(error)
    return {"store": plan.text.serve, "key": key, "way": way, "level": level, "not_from_log": why}


def _served_line(served: Mapping[str, Any]) -> str:
    key = ", ".join(served["key"])
    line = f"served from its {served['way']} in {served['store']}, key ({key}): {served['level']}"
    why = served["not_from_log"]
    return line if why is None else f"{line}; not from the log, as asked: {why}"


def hidden_below(plan: Planned, known: Mapping[str, Planned]) -> list[Planned]:
    """The hidden nodes that a view is made of, each behind those that it reads."""
    found: dict[str, Planned] = {}
    for name in plan.parents:
        below = known.get(name)
        if below is not None and below.hidden:
            found |= {p.name: p for p in (*hidden_below(below, known), below)}
    return list(found.values())


def levels(known: Mapping[str, Planned]) -> dict[str, str]:
    """At which level all of these are kept: a hidden node at the highest of those that read it."""
    found = {name: plan.level for name, plan in known.items() if not plan.hidden}
    readers: dict[str, list[str]] = {name: [] for name in known}
    for name, parent in ((p.name, parent) for p in known.values() for parent in p.parents):
        readers.setdefault(parent, []).append(name)

    def level(name: str) -> str:
        if name not in found:
            found[name] = max(map(level, readers[name]), key=rank, default=known[name].level)
        return found[name]

    return {name: level(name) for name in known}


def shared_with(node: Planned, view: str, known: Mapping[str, Planned]) -> list[str]:
    """The other views that are made of a hidden node."""
    others = [p for p in known.values() if not p.hidden and p.name != view]
    return sorted(p.name for p in others if node.name in {h.name for h in hidden_below(p, known)})


def title(plan: Planned, known: Mapping[str, Planned]) -> str:
    """What a hidden node does, in one line."""
    tree = _Drawing(plan, known, lambda _: None).tree(plan)
    return str(tree["text"])


class _Drawing:
    """Draws the tree of one view."""

    def __init__(self, view: Planned, known: Mapping[str, Planned], sizes: Sizes) -> None:
        self._view = view.name
        self._known = known
        self._levels = levels(known)
        self._sizes = sizes
        hidden = hidden_below(view, known)
        self._labels = {p.name: f"node{i}" for i, p in enumerate(hidden, 1)}
        self._drawn: set[str] = set()
        self.lookups: list[dict[str, Any]] = []

    def tree(self, plan: Planned) -> Element:
        """A view's or a hidden node's tree, down to tables and other views."""
        assert plan.node is not None
        self._drawn.add(plan.name)
        words = PlanWords(plan, self._known, self._labels)
        asked = [*self._asked(plan, words)]
        self.lookups += asked
        tree = self._operator(plan.node, plan.node.node.block, words, asked)
        if plan.node.fold is not None:
            tree = _folded(plan.node, plan.node.fold, words, tree)
        kept: dict[str, Any] = {
            "name": plan.name,
            "label": self._labels.get(plan.name, plan.name),
            "level": self._levels.get(plan.name, plan.level),
            "shows": _shown(plan, words),
            "size": self._sizes(plan.name),
            "shared_with": shared_with(plan, self._view, self._known) if plan.hidden else [],
        }
        return {**tree, "node": kept}

    def _operator(
        self, node: PlanNode, operator: Operator, words: PlanWords, asked: Sequence[Element]
    ) -> Element:
        if isinstance(operator, Scan):
            return self._scan(node, operator, words, asked)
        if isinstance(operator, Project):
            return self._operator(node, operator.operand, words, asked)
        kind, text = _told(operator, words)
        parts = {node.inputs[s]: o for o in _parts(operator) for s in scans(o)}
        operands = list(parts.values()) or operator.operands
        below = [self._operator(node, o, words, asked) for o in operands]
        return {"operator": kind, "text": text, "inputs": below}

    def _scan(
        self, node: PlanNode, scan: Scan, words: PlanWords, asked: Sequence[Element]
    ) -> Element:
        origin, read = node.inputs[scan.number], words.scans[scan.number]
        mine = [x for x in asked if x["scan"] == scan.number]
        below = None if isinstance(origin, FromRelation) else self._known.get(origin.node)
        if below is not None and below.hidden and below.name not in self._drawn:
            return {**self.tree(below), "lookups": mine}
        kind = "table" if isinstance(origin, FromRelation) else "view"
        text = read.table
        if below is not None and below.hidden:
            kind, text = "node", f"{self._labels[below.name]}, as above"
        elif read.label.partition("#")[2]:
            text = f"{read.table}, as {read.label}"
        columns = [read.columns[i] for i in scan.used if i in read.columns]
        return {"operator": kind, "text": text, "inputs": [], "columns": columns, "lookups": mine}

    def _asked(self, plan: Planned, words: PlanWords) -> Iterator[dict[str, Any]]:
        """What a batch may ask for."""
        assert plan.node is not None
        columns = KnownColumns(plan.node, plan.relations)
        for link in links(plan.node.node.block, columns):
            for start, end in link.directed():
                if not end.scans:
                    continue
                if start.keys is None or end.keys is None or not end.findable:
                    for scan in sorted(end.entry):
                        yield {**_of(plan.node, words, start, scan), "by": None, "index": False}
                    continue
                for place in end.keys:
                    found = _of(plan.node, words, start, place.scan)
                    by = words.place(place.scan, place.column)
                    yield {**found, "by": by, "index": columns.indexed(place), "own": end.own}


def _told(operator: Operator, words: PlanWords) -> tuple[str, str]:
    """What kind of operator it is, and how a person says it."""
    if _parts(operator):
        return "extremes", _extremes_told(operator, words)
    if isinstance(operator, InnerJoin | SplitJoin):
        kind = "join" if isinstance(operator, InnerJoin) else operator.kind
        name, on = _JOINS.get(kind, "join"), words.condition(operator)
        return kind, f"{name} on {on}" if on else f"{name}, every row with every row"
    if isinstance(operator, Filter):
        return "where", f"where {said(operator.condition, words.of(operator.operand))}"
    if isinstance(operator, Constant):
        return "values", f"{len(operator.rows)} constant row{'s' * (len(operator.rows) != 1)}"
    assert isinstance(operator, UnionAll)
    return "union", "union all"


def _parts(operator: Operator) -> tuple[Operator, ...]:
    """What the extremes of a query are made of: totals, then values; none: it is no such query."""
    if isinstance(operator, Extreme):
        return (operator.operand,)
    if not isinstance(operator, InnerJoin | SplitJoin) or not isinstance(operator.right, Extreme):
        return ()
    left = () if operator.left == ONE_GROUP else _parts(operator.left) or (operator.left,)
    return (*left, operator.right.operand)


def _extremes_told(operator: Operator, words: PlanWords) -> str:
    found = [o for o in walk(operator) if isinstance(o, Extreme)]
    names = words.of(operator)
    listed = ", ".join(names[e.name] for e in found)
    keys = ", ".join(names[key] for key in found[0].keys if key != found[0].group)
    beside = ", beside sums" if len(_parts(operator)) > len(found) else ""
    return f"{listed} per {keys}{beside}" if keys else f"{listed} of all rows{beside}"


def _folded(node: PlanNode, fold: Fold, words: PlanWords, below: Element) -> Element:
    """What a fold keeps, above what it is made of."""
    kept = words.kept(fold)
    keys = [kept[k.name] for k in fold.keys]
    if node.role == "sides":
        kept |= dict(zip((s.name for s in fold.sums), _SIDES, strict=False))
    sums = [kept[s.name] for s in fold.all_sums]
    shown = list(dict.fromkeys(kept[name] for name, _ in fold.values)) or sums
    listed = ", ".join(keys)
    text = {
        "groups": f"group by {listed}: {', '.join(shown)}" if keys else ", ".join(shown),
        "distinct": f"distinct {listed}",
        "sides": f"{_set_operation(node)} on {listed}",
        "extremes": f"values per {listed}",
        "totals": f"{', '.join(sums)} per {listed}" if keys else ", ".join(sums),
    }.get(node.role, f"keep per {listed}")
    if fold.having:
        text += f" having {said(fold.having, kept)}"
    keeps = {
        "per": keys,
        "sums": [{"of": kept[s.name], "type": s.type} for s in fold.all_sums],
        "why": _WHY.get(node.role, ""),
    }
    return {"operator": node.role or "fold", "text": text, "inputs": [below], "keeps": keeps}


def _set_operation(node: PlanNode) -> str:
    word = node.says.partition(" ")[0].lower()
    return word if word in ("intersect", "except") else "set operation"


def _shown(plan: Planned, words: PlanWords) -> list[str]:
    """The SELECT list in people's words."""
    texts = words.outputs()
    if plan.hidden:
        # the first column of a part is a number that finds a group
        return texts[1:] if plan.node is not None and plan.node.role in PARTS else texts
    names = [name for name, _ in plan.columns]
    pairs = zip(texts, names, strict=True)
    return [t if t == n or t.endswith(f".{n}") else f"{t} AS {n}" for t, n in pairs]


def _of(node: PlanNode, words: PlanWords, start: Side, scan: int) -> dict[str, Any]:
    origin = node.inputs[scan]
    source = origin.relation.source if isinstance(origin, FromRelation) else None
    came = [words.scans[s].label for s in sorted(start.scans)]
    return {"from": came, "scan": scan, "table": words.scans[scan].table, "source": source}


def _wanted(lookups: Sequence[dict[str, Any]]) -> list[dict[str, str]]:
    """The lookups that an index at the source would make cheap."""
    wanted = {
        (x["source"], x["table"].partition(".")[2], x["by"])
        for x in lookups
        if x["source"] is not None and x["by"] is not None and not x["index"]
    }
    return [{"source": s, "table": t, "column": c} for s, t, c in sorted(wanted)]


def _lines(data: dict[str, Any]) -> list[str]:
    way = "" if data["algorithm"] == VERSIONS else f" by {data['algorithm']}"
    how = "recomputed as a whole" if data["kind"] == "recomputed" else f"incrementally{way}"
    lines = [f"view   {data['view']}", f"kept   {how}", f"level  {data['level']}{_states(data)}"]
    if data["policy"] not in (None, IMMEDIATE):
        lines.append(f"shown  {data['policy']}, refreshed {data['schedule'] or 'on demand'}")
    if data["served"]:
        lines.append(_served_line(data["served"]))
    if data.get("cn") is not None:
        at = f" of {data['time']}" if data.get("time") else ""
        lines.append(f"state  {data['state']}, at cn {data['cn']}{at}")
    else:
        lines.append(f"state  {data['state']}")
    lines += [f"note   {note}" for note in data["notes"]]
    if data.get("reason"):
        lines.append(f"why    {data['reason']['code']}: {data['reason']['message']}")
    lines += ["", *_tree_lines(data["tree"])]
    wanted = data["indexes_wanted"]
    lines += [""] * bool(wanted or data["warnings"])
    for w in wanted:
        lines.append(f"hint: an index on {w['table']} ({w['column']}) at {w['source']} would help")
    lines += [f"warning: {warning}" for warning in data["warnings"]]
    return lines


def _states(data: dict[str, Any]) -> str:
    """What the level means where it is the default way's."""
    below = data["algorithm"] == VERSIONS and data["level"] != "complete"
    return ": one state per batch" if below else ""


def _tree_lines(tree: Element, first: str = "", rest: str = "") -> Iterator[str]:
    """The element and all below it; `first` stands before its first line, `rest` before others."""
    node, bar = tree.get("node"), "│  " if tree["inputs"] else "   "
    if node is not None:
        name = node.get("label", node["name"])
        shows = ", ".join(node.get("shows", [])) or tree["text"]
        yield f"{first}{name}: {shows}{_asked_text(tree)}"
        for line in _node_notes(node, tree):
            yield f"{rest}{bar}{line}"
        if node.get("shows") is not None:
            first, rest = f"{rest}└─ ", f"{rest}   "
            yield f"{first}{tree['text']}"
    else:
        yield f"{first}{tree['text']}{_asked_text(tree)}"
    if (keeps := tree.get("keeps")) is not None:
        sums = ", ".join(s["of"] for s in keeps["sums"])
        per = ", ".join(keeps["per"]) or "all rows together"
        yield f"{rest}{bar}keeps {sums} per {per}: {keeps['why']}"
    for below in tree["inputs"]:
        last = below is tree["inputs"][-1]
        yield from _tree_lines(
            below, f"{rest}{'└─ ' if last else '├─ '}", f"{rest}{'   ' if last else '│  '}"
        )


def _node_notes(node: dict[str, Any], tree: Element) -> Iterator[str]:
    if node.get("shared_with"):
        yield f"shared with {', '.join(node['shared_with'])}"
    if node["size"] is not None:
        words = {"rows": "rows", "changes": "changes", "state": "state"}
        parts = [(words[k], node["size"][k]) for k in words if node["size"].get(k) is not None]
        yield ", ".join(f"{w} {s['rows']:,} ({bytes_said(s['bytes'])})" for w, s in parts)


def _asked_text(tree: Element) -> str:
    """How an input is read when something else changes."""
    asked = tree.get("lookups") or []
    whole = [x for x in asked if x["by"] is None]
    if any(not x["from"] for x in whole):
        return "   read whole at every change"
    by: dict[str, list[str]] = {}
    for x in asked:
        if x["by"] is not None:
            known = "" if x["source"] is None else " (index)" if x["index"] else " (no index)"
            if x["by"] not in by.setdefault(known, []):
                by[known].append(x["by"])
    parts = [f"looked up by {', '.join(names)}{known}" for known, names in by.items()]
    parts += [f"read whole when {' or '.join(x['from'])} changes ({_NO_KEY})" for x in whole]
    return f"   {'; '.join(dict.fromkeys(parts))}" if parts else ""
