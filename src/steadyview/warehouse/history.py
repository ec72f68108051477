"""Which commits changed a view, and by how many visible rows.

For a SELECT-PROJECT-JOIN view the view delta says it. For an aggregate view the visible change of a
group at cn is the difference of its visible row before and after, from the running state in cn
order:

    state(group, cn)  =  state(group, start)  +  sum{ delta(group, s) : start < s <= cn }
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from steadyview.catalog.views import Base, ViewRow
from steadyview.delta import AddedFile, FileEntry
from steadyview.delta.failures import told
from steadyview.engine.frames import Frames
from steadyview.engine.statements import fragile, visible_struct
from steadyview.warehouse.bounds import surely_shown
from steadyview.warehouse.impossible import below_zero_at
from steadyview.warehouse.small_history import Changed as Changed
from steadyview.warehouse.small_history import small_changes
from steadyview.warehouse.states import States, nearest
from steadyview.warehouse.view_store import ViewStore, ddl


def changes(
    session: Callable[[], SparkSession],
    store: ViewStore,
    row: ViewRow,
    bases: list[Base],
    limit: int,
) -> list[Changed]:
    """The newest commits that changed the view, newest first.

    Spark is asked only for an aggregate view, and there where `small_history` does not know it.
    """
    newest, start, version = row.cn or 0, row.oldest_cn, row.delta_version or 0
    files = store.delta_files(version, start, newest)
    if not files:
        return []
    if not store.shape.states:
        return _counted(store, files, start, newest)[:limit]
    base = nearest(bases, start)
    found = small_changes(store, row, base)
    return asked_changes(session(), store, row, base, limit) if found is None else found[:limit]


def asked_changes(
    spark: SparkSession, store: ViewStore, row: ViewRow, base: Base, limit: int
) -> list[Changed]:
    """The same for an aggregate view, from Spark."""
    newest, start, version = row.cn or 0, row.oldest_cn, row.delta_version or 0
    states = States(spark, store)
    delta = states.changed_sql(start, newest, version)
    assert delta is not None
    first = states.states_sql(base, start, version)
    sql = _aggregate_changes(Frames(spark), store, delta, first)
    found = spark.sql(
        f"SELECT * FROM ({sql}) WHERE added > 0 OR removed > 0 ORDER BY _cn DESC LIMIT {limit}"
    ).toArrow()
    return [Changed(r["_cn"], r["added"], r["removed"]) for r in found.to_pylist()]


def _counted(
    store: ViewStore, files: Sequence[FileEntry], after: int, upto: int
) -> list[Changed]:
    """The rows that each commit of (after, upto] added and removed, as the view delta has them."""
    with told(store.delta.path):
        read = [pq.ParquetFile(f.path).read(columns=["_cn", "_count"]) for f in files]
    rows = pa.concat_tables(read)
    cn, count = rows["_cn"], rows["_count"]
    added, removed = (pc.max_element_wise(n, 0) for n in (count, pc.negate(count)))
    per_row = pa.table({"cn": cn, "added": added, "removed": removed})
    within = pc.and_(pc.greater(cn, after), pc.less_equal(cn, upto))
    summed = per_row.filter(within).group_by("cn").aggregate([("added", "sum"), ("removed", "sum")])
    found = summed.sort_by([("cn", "descending")]).to_pylist()
    return [Changed(r["cn"], r["added_sum"], r["removed_sum"]) for r in found]


def check_shown(frames: Frames, store: ViewStore, after: int, delta: str) -> None:
    """Compute what readers see at each cn of a delta (a FROM item) behind cn `after`.

    Raises what they would meet, which an expression over aggregates and a sum can bring about.
    """
    states = States(frames.spark, store)
    before = states.states_sql(store.newest_base(), after, store.delta.version())
    steps = visible_steps(frames, store, delta, before)
    shown = frames.spark.sql(f"SELECT _row FROM ({steps}) WHERE _cn > 0")
    shown.write.format("noop").mode("overwrite").save()


def check_added(
    frames: Frames, store: ViewStore, after: int, added: Sequence[AddedFile]
) -> None:
    """The same for files of a view delta that are to be added, where it is not sure anyway."""
    if not added or not (
        fragile(store.shape.definition) or not surely_shown(store, after, added)
    ):
        return
    paths = [str(store.delta.path / f.path) for f in added]
    check_shown(frames, store, after, frames.parquet("added", paths, ddl(store.shape.delta)))


def _aggregate_changes(frames: Frames, store: ViewStore, delta: str, first: str) -> str:
    steps = visible_steps(frames, store, delta, first)
    return (
        "SELECT _cn, SUM(IF(_row IS NOT NULL AND NOT _row <=> _before, 1L, 0L)) AS added, "
        "SUM(IF(_before IS NOT NULL AND NOT _row <=> _before, 1L, 0L)) AS removed "
        f"FROM ({steps}) WHERE _cn > 0 GROUP BY _cn"
    )


def visible_steps(
    frames: Frames, store: ViewStore, delta: str, first: str, *, possible: bool = True
) -> str:
    """Per group and cn of a summary delta, the visible row `_row` and the one `_before`.

    `delta` is a FROM item, `first` a query of the states before it, which come as cn 0. Every state
    must be `possible`, but for those that an algorithm passes through on its way.
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
    refusal = below_zero_at(store.name, shape) if possible else None
    rows = visible_struct(shape.definition, shape.types, f"({states})", refusal)
    before = f"LAG(_row) OVER (PARTITION BY {by} ORDER BY _cn) AS _before"
    return f"SELECT _cn, _row, {before} FROM ({rows})"
