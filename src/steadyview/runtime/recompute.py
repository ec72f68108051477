"""A view's SQL text over its relations as of a cn: for recomputed views and for `verify`."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame

from steadyview.engine.frames import Frames
from steadyview.engine.guard import guarded
from steadyview.query.as_of import Reflection, RelationsAsOf
from steadyview.runtime.moment import Moment, admitted_since
from steadyview.runtime.parts import Parts
from steadyview.runtime.planning import Planned
from steadyview.views.definition import Average
from steadyview.views.rewrite import with_tables


def recomputed(
    parts: Parts, frames: Frames, plan: Planned, moment: Moment, cn: int, folder: Path
) -> tuple[DataFrame, int]:
    """The view's rows at cn by its SQL text, and how many log rows compensated the sources."""
    relations = RelationsAsOf(frames, folder, parts.log, cn)
    names = {}
    for relation in plan.relations:
        source = relation.name.source
        admitted = admitted_since(source, moment, cn, parts.catalog, parts.log)
        used = plan.uses(relation.name)
        columns = [i for i, c in enumerate(relation.columns) if c.name in used] or [0]
        names[relation.name] = relations.view(
            relation,
            columns,
            moment.snapshots[source],
            Reflection(admitted.first, admitted.cn, admitted.reflected),
            others=True,
        )
    text = with_tables(plan.text, names, plan.relations, _of_whole_numbers(plan))
    return guarded(frames.spark, text, names.values()), relations.compensated


def _of_whole_numbers(plan: Planned) -> list[Average]:
    """The averages that are kept as DOUBLE: those of anything else are exact in Spark as well."""
    grouping = plan.definition.grouping if plan.definition else None
    averages = grouping.averages if grouping else ()
    values = dict(plan.node.fold.values) if plan.node and plan.node.fold else {}
    doubles = {a.number for a in averages if "AS DOUBLE" in values[f"_visible_avg_{a.number}"]}
    return [a for a in averages if a.number in doubles]
