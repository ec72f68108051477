"""A node as it is kept: its statement's parts, what it reads, what it shows, all types known.

This is what the catalog stores. It says everything that keeping and reading the node needs: no
source, no SQL text and no other node is looked at. Two nodes of equal `digest` mean the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from typing import Any

from steadyview.changes import RelationName
from steadyview.plans.constant import Constant
from steadyview.plans.ends import Ends, ends
from steadyview.plans.extreme import Extreme
from steadyview.plans.filter import Filter
from steadyview.plans.fold import Fold, Key, Sum
from steadyview.plans.inner_join import Equality, InnerJoin
from steadyview.plans.node import Node
from steadyview.plans.operator import walk
from steadyview.plans.project import Project
from steadyview.plans.scan import Scan
from steadyview.plans.split_join import SplitJoin
from steadyview.plans.union_all import UnionAll

HIDDEN = "~"
"""How the name of a node begins that is part of views and none itself."""


@dataclass(frozen=True)
class FromRelation:
    """A relation of a source, with the types of the columns that are read, by number."""

    relation: RelationName
    types: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class FromNode:
    """Another node by its name, a view's or a hidden one's, with the types of what is read."""

    node: str
    digest: str
    types: tuple[tuple[int, str], ...]


Origin = FromRelation | FromNode


@dataclass(frozen=True)
class PlanNode:
    """`inputs[n]` is what scan n reads; `columns` are `c0`, `c1`, ... with their types.

    For people: `says` is what it stands for, `role` what its state is there for, `words` what its
    sums and aggregates are called.
    """

    node: Node
    inputs: tuple[Origin, ...]
    columns: tuple[tuple[str, str], ...]
    says: str = ""
    role: str = ""
    words: tuple[tuple[str, str], ...] = ()

    @property
    def fold(self) -> Fold | None:
        """What is kept beside the rows."""
        return self.node.fold

    @cached_property
    def scans(self) -> tuple[Scan, ...]:
        """The block's scans, by number."""
        found = [o for o in walk(self.node.block) if isinstance(o, Scan)]
        return tuple(sorted(found, key=lambda scan: scan.number))

    @cached_property
    def ends(self) -> dict[int, Ends]:
        """The scans of which only the ends are read."""
        return ends(self.node.block)

    @cached_property
    def digest(self) -> str:
        """Of everything that decides which rows it shows."""
        facts = {k: v for k, v in to_json(self).items() if k not in ("says", "role", "words")}
        facts["inputs"] = [
            {"digest": i.digest} if isinstance(i, FromNode) else as_data(i) for i in self.inputs
        ]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]

    @property
    def input_types(self) -> tuple[dict[int, str], ...]:
        """The types of the columns that each scan reads, by number."""
        return tuple(dict(origin.types) for origin in self.inputs)

    def used(self) -> dict[RelationName, frozenset[int]]:
        """Per relation, the numbers of the columns that are read."""
        found: dict[RelationName, frozenset[int]] = {}
        for scan in self.scans:
            origin = self.inputs[scan.number]
            if isinstance(origin, FromRelation):
                before = found.get(origin.relation, frozenset())
                found[origin.relation] = before | frozenset(scan.used)
        return found

    def nodes(self) -> tuple[str, ...]:
        """The names of the nodes that it reads, each once."""
        return tuple(dict.fromkeys(i.node for i in self.inputs if isinstance(i, FromNode)))


HIDDEN = "~"
"""How the name of a node begins that is part of views and none itself."""


def hidden_name(node: PlanNode) -> str:
    """What a node is called that is part of views and none itself."""
    return f"{HIDDEN}{node.digest[:12]}"


_CLASSES = {
    c.__name__: c
    for c in (
        *(Scan, Constant, Filter, Project, InnerJoin, SplitJoin, UnionAll, Equality),
        *(Extreme, Fold, Key, Sum, Node),
        *(FromRelation, FromNode, RelationName, PlanNode),
    )
}


def to_json(node: PlanNode) -> dict[str, Any]:
    """As data that `from_json` reads back to an equal node."""
    data: dict[str, Any] = as_data(node)
    return data


def from_json(data: Mapping[str, Any]) -> PlanNode:
    """The inverse of `to_json`."""
    node = _value(data)
    assert isinstance(node, PlanNode)
    return node


def as_data(value: Any) -> Any:
    """Any value of this room as JSON: dataclasses by their fields, tuples as lists."""
    if is_dataclass(value) and not isinstance(value, type):
        kept = {f.name: as_data(getattr(value, f.name)) for f in fields(value)}
        return {"is": type(value).__name__, **kept}
    return [as_data(v) for v in value] if isinstance(value, tuple) else value


def _value(data: Any) -> Any:
    if isinstance(data, Mapping):
        kept = {k: _value(v) for k, v in data.items() if k != "is"}
        return _CLASSES[data["is"]](**kept)
    return tuple(_value(v) for v in data) if isinstance(data, list) else data
