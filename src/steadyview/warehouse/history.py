"""Which commits changed a view, and by how many visible rows.

For a SELECT-PROJECT-JOIN view the view delta says it. For an aggregate view the visible change of a
group at cn is the difference of its visible row before and after, from the running state in cn
order:

    state(group, cn)  =  state(group, start)  +  sum{ delta(group, s) : start < s <= cn }
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from steadyview.catalog.views import Base, ViewRow
from steadyview.engine.frames import Frames
from steadyview.engine.statements import visible_struct
from steadyview.warehouse.impossible import below_zero_at
from steadyview.warehouse.states import States, nearest
from steadyview.warehouse.view_store import ViewStore


@dataclass(frozen=True)
class Changed:
    """Visible rows that a commit added and removed (an update of a row is one of each)."""

    cn: int
    added: int
    removed: int


def changes(
    spark: SparkSession, store: ViewStore, row: ViewRow, bases: list[Base], limit: int
) -> list[Changed]:
    """The newest commits that changed the view, newest first."""
    states = States(spark, store)
    newest, start = row.cn or 0, row.oldest_cn
    delta = states.changed_sql(start, newest, row.delta_version or 0)
    if delta is None:
        return []
    if store.shape.states:
        first = states.states_sql(nearest(bases, start), start, row.delta_version or 0)
        sql = _aggregate_changes(Frames(spark), store, delta, first)
    else:
        sql = (
            "SELECT _cn, SUM(IF(_count > 0, _count, 0)) AS added, "
            f"SUM(IF(_count < 0, -_count, 0)) AS removed FROM {delta} GROUP BY _cn"
        )
    found = spark.sql(
        f"SELECT * FROM ({sql}) WHERE added > 0 OR removed > 0 ORDER BY _cn DESC LIMIT {limit}"
    ).toArrow()
    return [Changed(r["_cn"], r["added"], r["removed"]) for r in found.to_pylist()]


def _aggregate_changes(frames: Frames, store: ViewStore, delta: str, first: str) -> str:
    steps = visible_steps(frames, store, delta, first)
    return (
        "SELECT _cn, SUM(IF(_row IS NOT NULL AND NOT _row <=> _before, 1L, 0L)) AS added, "
        "SUM(IF(_before IS NOT NULL AND NOT _row <=> _before, 1L, 0L)) AS removed "
        f"FROM ({steps}) WHERE _cn > 0 GROUP BY _cn"
    )


def visible_steps(frames: Frames, store: ViewStore, delta: str, first: str) -> str:
    """Per group and cn of a summary delta, the visible row `_row` and the one `_before`.

    `delta` is a FROM item, `first` a query of the states before it, which come as cn 0.
    """
    shape = store.shape
    assert shape.definition is not None
    types = dict(shape.states)
    keys = [n for n in types if n.startswith("_g")]
    sums = [n for n in types if not n.startswith("_g")]
    every = ", ".join(keys + sums)
    start = frames.query("start", first)
    by = ", ".join(keys) or "1"
    running = ", ".join(f"CAST(SUM({n}) OVER w AS {types[n]}) AS {n}" for n in sums)
    listed = "".join(f"{k}, " for k in keys)
    events = f"SELECT {every}, 0L AS _cn FROM {start} UNION ALL SELECT {every}, _cn FROM {delta}"
    states = (
        f"SELECT {listed}_cn, {running} FROM ({events}) "
        f"WINDOW w AS (PARTITION BY {by} ORDER BY _cn ROWS UNBOUNDED PRECEDING)"
    )
    refusal = below_zero_at(store.name, shape)
    rows = visible_struct(shape.definition, shape.types, f"({states})", refusal)
    before = f"LAG(_row) OVER (PARTITION BY {by} ORDER BY _cn) AS _before"
    return f"SELECT _cn, _row, {before} FROM ({rows})"
