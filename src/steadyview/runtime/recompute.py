"""A view's SQL text over its relations as of a cn: for recomputed views and for `verify`.

What it reads of other views is recomputed from their texts in the same way, down to the sources. A
hidden node has no text: its plan is read as plain SQL over whole relations (`plans/plain.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame

from steadyview.changes import RelationName
from steadyview.engine.frames import Frames
from steadyview.engine.guard import guarded
from steadyview.plans import plain
from steadyview.plans.plan import FromNode, Origin
from steadyview.query.as_of import RelationsAsOf
from steadyview.query.moment import Moment, admitted_since
from steadyview.runtime.parts import Parts
from steadyview.runtime.planning import Planned
from steadyview.views.definition import AverageCall
from steadyview.views.plan import views_read
from steadyview.views.rewrite import averages_in, with_tables


@dataclass
class Recomputing:
    """Recomputes views at one cn, under one moment; `plans` are all that a text may read."""

    parts: Parts
    frames: Frames
    plans: Mapping[str, Planned]
    moment: Moment
    cn: int
    folder: Path
    _relations: dict[tuple[RelationName, frozenset[str]], str] = field(default_factory=dict)
    _nodes: dict[str, str] = field(default_factory=dict)
    _as_of: RelationsAsOf | None = None

    @property
    def compensated(self) -> int:
        """How many log rows compensated the sources."""
        return 0 if self._as_of is None else self._as_of.compensated

    def rows(self, plan: Planned) -> DataFrame:
        """The view's rows by its SQL text."""
        assert plan.text is not None
        read = views_read(plan.text, self.plans)
        views = {n: self.frames.frame("view", self.rows(self.plans[n])) for n in read}
        relations = {r.name: r for r in plan.relations}
        uses = {name: plan.uses(name) for name in relations}
        for hidden in self._hidden(plan):
            for relation in hidden.relations:
                relations[relation.name] = relation
                used = uses.get(relation.name, frozenset()) | hidden.uses(relation.name)
                uses[relation.name] = used
        names = {name: self._relation(plan, name, uses[name]) for name in relations}
        found = list(relations.values())
        whole, exact = _of_whole_numbers(plan), plan.node is not None
        text = with_tables(plan.text, names, found, views, averages=whole, exact=exact)
        return guarded(self.frames.spark, text, [*names.values(), *views.values()])

    def node_rows(self, plan: Planned) -> DataFrame:
        """A hidden node's rows, by the plain SQL that its plan stands for."""
        return self.frames.spark.table(self._node(plan))

    def node_state(self, plan: Planned) -> DataFrame:
        """The state that a view or hidden node must have, in the same way."""
        assert plan.node is not None
        return self.frames.spark.sql(plain.state(plan.node.node, self._inputs(plan)))

    def _node(self, plan: Planned) -> str:
        """A temporary view of a hidden node's rows, made once."""
        assert plan.node is not None
        if plan.name not in self._nodes:
            sql = plain.rows(plan.node.node, self._inputs(plan))
            self._nodes[plan.name] = self.frames.query("node", sql)
        return self._nodes[plan.name]

    def _inputs(self, plan: Planned) -> list[str]:
        """What the scans of a plan read, their columns called `c0`, `c1`, ..."""
        assert plan.node is not None
        return [f"({self._input(plan, origin)})" for origin in plan.node.inputs]

    def _input(self, plan: Planned, origin: Origin) -> str:
        if isinstance(origin, FromNode):
            below = self.plans[origin.node]
            if below.hidden:
                return f"SELECT * FROM {self._node(below)}"
            names = [f"c{i}" for i in range(len(below.columns))]
            return f"SELECT * FROM {self.frames.frame('view', self.rows(below).toDF(*names))}"
        relation = next(r for r in plan.relations if r.name == origin.relation)
        table = self._relation(plan, relation.name, plan.uses(relation.name))
        listed = ", ".join(f"{_quoted(relation.columns[i].name)} AS c{i}" for i, _ in origin.types)
        return f"SELECT {listed} FROM {table}"

    def _hidden(self, plan: Planned) -> list[Planned]:
        """The hidden nodes below a view, all of them."""
        found = []
        for name in plan.parents:
            below = self.plans[name]
            if below.hidden:
                found += [below, *self._hidden(below)]
        return found

    def _relation(self, plan: Planned, name: RelationName, used: frozenset[str]) -> str:
        key = (name, used)
        if key not in self._relations:
            everything = [plan, *self._hidden(plan)]
            relation = next(r for p in everything for r in p.relations if r.name == name)
            if self._as_of is None:
                self._as_of = RelationsAsOf(self.frames, self.folder, self.parts.log, self.cn)
            source = name.source
            admitted = admitted_since(
                source, self.moment, self.cn, self.parts.catalog, self.parts.log
            )
            columns = [i for i, c in enumerate(relation.columns) if c.name in used] or [0]
            self._relations[key] = self._as_of.view(
                relation,
                columns,
                self.moment.snapshots[source],
                admitted,
                others=True,
            )
        return self._relations[key]


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _of_whole_numbers(plan: Planned) -> list[AverageCall]:
    """The averages that are kept as DOUBLE: those of anything else are exact in Spark as well."""
    assert plan.text is not None
    found = averages_in(plan.text)
    if len(found) == len(plan.averages):
        return [a for a, whole in zip(found, plan.averages, strict=True) if whole]
    return list(found) if plan.averages and all(plan.averages) else []
