"""How a node is kept, as the catalog remembers it: by which algorithm, by which plan, over what.

A view that is kept at `complete` has a state at every cn. At any other level it has states at the
ends of batches, and where nothing of what it reads changed (`gaps.py`); or, of an algorithm of the
papers, those that were installed, and only these can be read: between two of them the view delta
does not say what happened when. So a view that changes from such an algorithm to another is built
anew; one that asks for another level goes on from where it is.

The catalog's row says all of it: reading and explaining a view needs no source and no file.

A node goes on from where it is only over the very nodes that it has read so far: one that was built
anew has no change that leads from its old rows to its new ones.

What is remembered is enough to keep the node, also when its file says something else by now, or is
gone (`planned_as_kept`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from steadyview.catalog import Deferred, ViewRow
from steadyview.changes import RelationName, RelationSchema
from steadyview.errors import ViewRefused
from steadyview.maintenance.algorithms import kind_of
from steadyview.plans.plan import HIDDEN, FromNode, PlanNode, from_json, to_json
from steadyview.runtime.planning import VERSIONS, Planned
from steadyview.runtime.spark_types import Columns
from steadyview.timing.schedules import RefreshSchedule, refresh_target, schedule
from steadyview.views.analyze import analyze
from steadyview.views.compression import Compression, compression
from steadyview.views.join_tree import join_tree
from steadyview.views.parse import SERVED_FROM, ViewText
from steadyview.views.plan import with_view_renamed
from steadyview.views.trailing import Trailing, trailing
from steadyview.warehouse.table_mark import TABLES

if TYPE_CHECKING:
    from steadyview.warehouse.view_store import Shape

Known = Mapping[RelationName, RelationSchema]
"""The relations that are recorded."""


@dataclass(frozen=True)
class Kept:
    """A row of the catalog and the plan by which it is kept."""

    row: ViewRow
    plan: Planned
    propagated: int | None = None
    """The cn up to which its changes are at hand, shown or not; None: it has no state."""

    @property
    def id(self) -> int:
        """Its own for ever."""
        return self.row.id

    @property
    def name(self) -> str:
        """What it is called now; one that is built beside has its view's name."""
        return self.row.name

    @property
    def label(self) -> str:
        """What it is called among those that are worked on."""
        return f"{self.name} (built anew)" if self.row.replacement else self.name

    @cached_property
    def inputs(self) -> dict[str, int]:
        """The nodes that it reads: what its plan calls them, and their ids."""
        return inputs_of(self.row)


def described(plan: Planned, inputs: Mapping[str, int]) -> str:
    """What the catalog keeps of a plan; `inputs`: the nodes that it reads, with their ids."""
    refusal = plan.refusal
    return json.dumps(
        {
            "algorithm": plan.algorithm_name,
            "columns": plan.columns,
            "plan": None if plan.node is None else to_json(plan.node),
            "inputs": dict(inputs),
            "table": None if plan.text is None else plan.text.table,
            "changes": None if plan.text is None else plan.text.changes,
            "compress": None if plan.text is None else plan.text.compress,
            "refresh": None if plan.text is None else refresh_properties(plan.text),
            "serve": served_in(plan),
            # without what the sources said of them last, which changes by itself
            "relations": [replace(r, evidence="").to_json() for r in plan.relations],
            "averages": plan.averages,
            "inherits": plan.inherits,
            "over_every_state": plan.over_every_state,
            "warnings": plan.warnings,
            "reason": None if refusal is None else [refusal.code, refusal.message],
        }
    )


def recalled(row: ViewRow) -> Planned:
    """The plan by which a view or hidden node is kept, as the catalog remembers it."""
    return _recalled(row.name, row.sql, row.level, row.definition)


@lru_cache(maxsize=1_000)
def _recalled(name: str, sql: str, level: str, definition: str) -> Planned:
    found = _read(definition)
    algorithm, reason = found.get("algorithm", VERSIONS), found.get("reason")
    plan = found.get("plan")
    asked = {"steadyview.level": level}
    if plan is None:
        asked["steadyview.fallback"] = "recompute"
    if found.get("table") is not None:
        asked["steadyview.table"] = found["table"]
    if found.get("changes") is not None:
        asked["steadyview.changes"] = found["changes"]
    if found.get("compress") is not None:
        asked["steadyview.compress"] = found["compress"]
    asked |= found.get("refresh") or {}
    served = found.get("serve") or {}
    if served:
        asked["steadyview.serve"] = served["store"]
        asked["steadyview.serve.from"] = served.get("from", SERVED_FROM[0])
    made = Planned(
        name,
        tuple((name, type_) for name, type_ in found.get("columns", ())),
        tuple(RelationSchema.from_json(r) for r in found.get("relations", ())),
        None if plan is None else from_json(plan),
        None if name.startswith(HIDDEN) else ViewText(name, sql, level=level, properties=asked),
        refusal=None if reason is None else ViewRefused(*reason),
        averages=tuple(found.get("averages", ())),
        inherits=found.get("inherits", "complete"),
        over_every_state=found.get("over_every_state", True),
        serve_key=tuple(served.get("key", ())),
        told=tuple(found.get("warnings", ())),
    )
    if algorithm == VERSIONS or plan is None or made.text is None or not made.relations:
        return made
    flat = analyze(made.text, made.relations)
    return replace(made, algorithm=kind_of(algorithm), definition=flat, tree=join_tree(flat))


def all_recalled(rows: Iterable[ViewRow]) -> dict[str, Planned]:
    """The plans of all that are kept, by name."""
    return {row.name: recalled(row) for row in rows if row.state != "refused"}


def _described(row: ViewRow) -> dict[str, Any]:
    return dict(_read(row.definition))


@lru_cache(maxsize=4096)
def _read(definition: str) -> dict[str, Any]:
    """Read once: rows are looked at often. Not to be changed."""
    found: dict[str, Any] = json.loads(definition) if definition else {}
    return found


def algorithm_of(row: ViewRow) -> str:
    """The algorithm by which the view was kept last."""
    return str(_described(row).get("algorithm", VERSIONS))


def inputs_of(row: ViewRow) -> dict[str, int]:
    """The nodes whose rows it was made of, with their ids."""
    return dict(_described(row).get("inputs", {}))


def columns_of(row: ViewRow) -> Columns:
    """Its columns, named as people know them, with their types."""
    return tuple((name, type_) for name, type_ in _described(row).get("columns", ()))


def plan_of(row: ViewRow) -> PlanNode | None:
    """The plan by which it is kept; None where it is recomputed, or refused."""
    found = _described(row).get("plan")
    return None if found is None else from_json(found)


def shape_of(row: ViewRow) -> Shape:
    """The columns of the rows that people see, by which they are stored."""
    # imported late: what the catalog says needs no Delta
    from steadyview.warehouse.view_store import Shape

    return Shape(columns_of(row))


def trailing_of(row: ViewRow, kind: str = TABLES) -> Trailing:
    """How far its table of that kind may trail."""
    return trailing(_described(row).get("table" if kind == TABLES else "changes"))


def compression_of(row: ViewRow) -> Compression | None:
    """Which single moments of its past are given up; None: all are kept."""
    found = _described(row).get("compress")
    return None if found is None else compression(found)


def reach_of(row: ViewRow, deferred: Deferred | None) -> int | None:
    """Up to which cn its changes are at hand, shown or not; None: it has no state."""
    return row.cn if row.cn is None or deferred is None else max(row.cn, deferred.propagated)


def refresh_properties(text: ViewText) -> dict[str, str]:
    """What the file says of when the view is refreshed, and how old answers may be."""
    names = (
        "steadyview.policy",
        "steadyview.schedule",
        "steadyview.refresh_to",
        "steadyview.max_staleness",
    )
    return {name: text.properties[name] for name in names if name in text.properties}


def served_in(plan: Planned) -> dict[str, Any] | None:
    """In which store its records are, and by which key they are found."""
    if plan.text is None or plan.text.serve is None:
        return None
    way = plan.text.serve_from
    return {"store": plan.text.serve, "key": list(plan.serve_key), "from": way}


def policy_of(row: ViewRow) -> str:
    """The view's refresh policy; see `policies`."""
    refresh = _described(row).get("refresh") or {}
    return str(refresh.get("steadyview.policy", "immediate"))


def schedule_of(row: ViewRow, zone: str) -> tuple[RefreshSchedule, Callable[[int], int]]:
    """When the view is refreshed, and what each tick brings it to."""
    refresh = _described(row).get("refresh") or {}
    found = schedule(refresh.get("steadyview.schedule"), zone)
    refresh_to = str(refresh.get("steadyview.refresh_to", "tick"))
    return found, lambda tick: refresh_target(refresh_to, tick, found.zone or zone)


def is_gated(row: ViewRow, zone: str) -> bool:
    """Whether its refreshes show moments of its sources' clocks: see `timing/gates.py`."""
    refresh = _described(row).get("refresh") or {}
    ends = refresh.get("steadyview.refresh_to", "tick") != "tick"
    return ends or schedule(refresh.get("steadyview.schedule"), zone).gated


def has_every_state(row: ViewRow) -> bool:
    """Whether the view's state at every cn within its retention can be told, but for its gaps."""
    return recalled(row).every_state


def kept_at_every_cn(rows: Iterable[ViewRow]) -> set[int]:
    """The ids of the rows whose state somebody needs at every cn.

    These are the views at level complete, whatever becomes of them now, with the hidden nodes that
    they are made of, and who follows the single states of a view that is kept by an algorithm of
    the papers.
    """
    known = {row.id: row for row in rows if row.state not in ("refused", "dropped")}
    left = [r for r in known.values() if _asks_for_every_cn(r)]
    found: set[int] = set()
    while left:
        row = left.pop()
        if row.id not in found:
            found.add(row.id)
            below = (known[i] for i in inputs_of(row).values() if i in known)
            left += [r for r in below if is_hidden(r)]
    return found


def _asks_for_every_cn(row: ViewRow) -> bool:
    asked = row.level == "complete" and not is_hidden(row)
    return asked or not _described(row).get("over_every_state", True)


def goes_on(row: ViewRow, plan: Planned) -> bool:
    """Whether what is kept of the view may be continued in the plan's way."""
    same = plan.algorithm_name == algorithm_of(row)
    return same or has_every_state(row)


def is_hidden(row: ViewRow) -> bool:
    """Whether it is part of views and none itself."""
    return row.name.startswith(HIDDEN)


def planned_as_kept(row: ViewRow, known: Known) -> Planned | None:
    """The plan by which the row is kept, over relations as recorded now; None if one is gone."""
    try:
        plan = recalled(row)
        names = [r.name for r in plan.relations] if plan.node is None else list(plan.node.used())
        relations = tuple(known[name] for name in names)
    except (KeyError, ViewRefused):
        return None
    return replace(plan, relations=relations) if relations or plan.node is not None else None


def with_parent_renamed(row: ViewRow, old: str, new: str) -> tuple[str, str]:
    """The row's SQL and definition, once the node that it knows as `old` is called `new`."""
    sql = row.sql and with_view_renamed(ViewText(row.name, row.sql), old, new)
    found, node = _described(row), plan_of(row)
    if old in found.get("inputs", {}):
        found["inputs"] = {new if n == old else n: i for n, i in found["inputs"].items()}
    if node is not None:
        inputs = tuple(
            replace(i, node=new) if isinstance(i, FromNode) and i.node == old else i
            for i in node.inputs
        )
        found["plan"] = to_json(replace(node, inputs=inputs))
    return sql, json.dumps(found)
