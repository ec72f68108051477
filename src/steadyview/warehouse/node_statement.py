"""A node's statement over its inputs' versions, and what comes out of it for the node's tables.

Few rows go through Arrow on the driver, many stay in Spark and pass as files.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import to_arrow_type

from steadyview.changes import arrow_type
from steadyview.delta.files import check_whole
from steadyview.engine.bags import copies
from steadyview.engine.block_inputs import BlockInputs
from steadyview.engine.frames import new_file
from steadyview.engine.local_rows import LOCAL_ROWS
from steadyview.engine.window_input import ARROW_LIMIT
from steadyview.plans.fold import BELOW, SAME, Fold
from steadyview.plans.lineage import holds_all
from steadyview.plans.plan import PlanNode
from steadyview.warehouse.impossible import below_zero
from steadyview.warehouse.view_store import CN, COUNT, NodeChange, ViewStore, ddl, quoted

_SCANNED = 2_000_000
"""A state of up to so many rows is searched by the driver for the keys that matter."""
_WORTH_A_STATEMENT = 50_000
"""With more rows of a state than these it is better to know first which keys are touched."""


@dataclass(frozen=True)
class Computed:
    """A change; `below`: a key that would have fewer than no rows, for people."""

    change: NodeChange
    below: str | None = None


class NodeStatement:
    """One node in one batch, over what its scans read."""

    def __init__(self, read: BlockInputs, node: PlanNode, store: ViewStore) -> None:
        self._read = read
        self._frames = read.frames
        self._folder = read.folder
        self._inputs = read.inputs
        self._node = node
        self._store = store

    # --- a first state -----------------------------------------------------------------------

    def first_rows(self, cn: int) -> pa.Table | str:
        """The visible rows at cn, few at hand or as a query; the state, if any, is stored."""
        rendering = self._read.at(self._node.node.block, cn)
        sql = self._node.node.statement(rendering, beginning=True)
        if all(i.log.count + i.answered_rows() <= LOCAL_ROWS for i in self._inputs.values()):
            found = self._frames.collected(f"{sql} LIMIT {ARROW_LIMIT + 1}")
            if found.num_rows <= ARROW_LIMIT and (rows := self._few(found, cn)) is not None:
                return rows
        return self._first_by_spark(sql, cn)

    def _few(self, found: pa.Table, cn: int) -> pa.Table | None:
        """The first rows of a result at hand; None if they are too many, or impossible."""
        fold, names = self._node.fold, [n for n, _ in self._store.shape.visible]
        count = COUNT if fold is None else "_new_times"
        prefix = "" if fold is None else "_new_"
        counts = found[count].to_numpy().astype(np.int64)
        if counts.sum() > ARROW_LIMIT or (counts < 0).any():
            return None
        if fold is not None:
            self._store.write_state(found.select(list(fold.state_names)), cn)
        shown = found.select([f"{prefix}c{i}" for i in range(len(names))])
        return shown.take(np.repeat(np.arange(found.num_rows), counts)).rename_columns(names)

    def _first_by_spark(self, sql: str, cn: int) -> str:
        shape = self._store.shape
        fold = self._node.fold
        refusal = below_zero(self._store.name, shape, cn)
        if fold is None:
            named = _named(shape.visible, "")
            rows = f"SELECT {named} FROM ({sql}) {copies(COUNT, refusal)}"
            return f"SELECT * FROM {self._frames.query('first', rows)}"
        wide, _ = self._written("first", sql)
        states = self._frames.sql(f"SELECT {', '.join(fold.state_names)} FROM {wide}")
        self._store.write_state(states, cn)
        there = f"(SELECT * FROM {wide} WHERE _new_times > 0)"
        return f"SELECT {_named(shape.visible, '_new_')} FROM {there} {_times()}"

    # --- a change ----------------------------------------------------------------------------

    def change(self, after: int, upto: int) -> Computed:
        """What the node's tables take for (after, upto]."""
        sql = self._sql(after, upto)
        if not self.small:
            return self._by_spark(sql, upto)
        return self.computed(self._frames.collected(sql))

    def computed(self, found: pa.Table) -> Computed:
        """What a result of the node's statement means for its tables."""
        fold = self._node.fold
        if fold is None:
            return Computed(NodeChange(found.select([n for n, _ in self._store.shape.delta])))
        rows, steps = _rows(found, fold), _steps(found, fold)
        return Computed(NodeChange(rows, steps), _below(found, fold))

    def uncompensated(self, after: int, upto: int) -> pa.Table:
        """What the same answers give if nothing compensates them: rows, or the state's steps."""
        found = self._frames.collected(self._sql(after, upto, compensated=False))
        return found if self._node.fold is None else _steps(found, self._node.fold)

    def _sql(self, after: int, upto: int, *, compensated: bool = True) -> str:
        block = self._node.node.block
        rendering = self._read.over(block, after, upto, compensated=compensated)
        state = None if self._node.fold is None else self._state(self._node.fold, after, upto)
        return self._node.node.statement(rendering, state)

    @cached_property
    def small(self) -> bool:
        """Whether the inputs' rows pass the driver."""
        return all(i.log.count + i.answered_rows() <= ARROW_LIMIT for i in self._inputs.values())

    def _by_spark(self, sql: str, upto: int) -> Computed:
        wide, found = self._written("wide", sql)
        if found is not None:
            # many rows came in, and few come out
            return self.computed(found)
        store, frames = self._store, self._frames
        fold = self._node.fold
        listed = ", ".join(n for n, _ in store.shape.delta)
        rows, steps = f"SELECT {listed} FROM {wide}", None
        if fold is not None:
            low = frames.sql(f"SELECT * FROM {wide} WHERE {BELOW} LIMIT 1").toArrow()
            if below := _below(low, fold):
                return Computed(NodeChange(pa.table({})), below)
            rows = _exploded(wide, fold)
            state = ", ".join([*fold.state_names, CN])
            since = store.steps.app_version("steps")
            steps = store.steps.unused_folder("steps", upto)
            sql = f"SELECT {state} FROM {wide} WHERE {CN} > {since}"
            frames.sql(sql).write.mode("overwrite").parquet(str(steps))
        since = store.delta.app_version("delta")
        delta = store.delta.unused_folder("delta", upto)
        sql = f"SELECT * FROM ({rows}) WHERE {CN} > {since}"
        frames.sql(sql).write.mode("overwrite").parquet(str(delta))
        return Computed(NodeChange(delta, steps))

    def _written(self, label: str, sql: str) -> tuple[str, pa.Table | None]:
        """A view of the result, computed once; the rows, where these are few."""
        frame = self._frames.sql(sql)
        path = new_file(self._folder, label)
        frame.write.mode("overwrite").parquet(str(path))
        read = self._frames.spark.read.schema(frame.schema).parquet(str(path))
        files = sorted(path.glob("*.parquet"))
        few = sum(pq.read_metadata(f).num_rows for f in files) <= ARROW_LIMIT
        schema = pa.schema([(f.name, to_arrow_type(f.dataType)) for f in frame.schema])
        rows = None
        if few:
            parts = [pq.read_table(f, schema=schema, partitioning=None) for f in files]
            rows = pa.concat_tables([schema.empty_table(), *parts])
        return self._frames.frame(label, read), rows

    # --- the state at the window's start -----------------------------------------------------

    def _state(self, fold: Fold, after: int, upto: int) -> str:
        """A view of the state's rows at `after` of all keys that the window can touch."""
        columns = self._store.shape.state
        found = self.state_rows(fold, after, upto)
        if found is not None:
            return self._frames.few("state", found, columns, self._folder)
        files, at = self._store.state_files(after), self._store.state_cn()
        rows = self._frames.parquet(
            "state", [f.path for f in files], ddl([*columns, (CN, "BIGINT")])
        )
        listed = ", ".join(n for n, _ in columns)
        wanted = f"{CN} IS NULL OR ({CN} > {at} AND {CN} <= {after})"
        return self._frames.query("state", f"SELECT {listed} FROM {rows} WHERE {wanted}")

    def state_rows(self, fold: Fold, after: int, upto: int) -> pa.Table | None:
        """The same rows at hand; None if that is too much to search."""
        files = self._store.state_files(after)
        check_whole(files)
        if sum(f.rows for f in files) > _SCANNED or not self.small:
            return None
        wanted = self._touching(fold, after, upto)
        found = self._store.state_rows(after, wanted)
        if found.num_rows <= _WORTH_A_STATEMENT or not fold.keys:
            return found
        return self._narrowed(fold, found, after, upto)

    def _narrowed(self, fold: Fold, found: pa.Table, after: int, upto: int) -> pa.Table:
        """Rows of the state without most of those that the window leaves alone.

        Keys may be computed, so that Spark is asked which are touched.
        """
        block = self._node.node.block
        sql = fold.touched(block, self._read.over(block, after, upto))
        touched = self._frames.collected(sql)
        for key in fold.keys:
            if not pa.types.is_floating(found[key.name].type):  # NaN and -0.0 are not compared
                values = pc.unique(touched[key.name].cast(found[key.name].type))
                found = found.filter(pc.is_in(found[key.name], value_set=values))
        return found

    def _touching(self, fold: Fold, after: int, upto: int) -> pc.Expression | None:
        """A filter that keeps every key that a row of the window's versions can have."""
        found: pc.Expression | None = None
        scans = {scan.number: scan for scan in self._node.scans}
        for key in fold.keys:
            places = holds_all(self._node.node.block, key.sql)
            if places is None:
                continue
            values = [
                self._inputs[p.scan]
                .table(scans[p.scan].used or (0,), after, upto)
                .column(f"c{p.column}")
                .cast(arrow_type(key.type))
                for p in places
            ]
            chunks = [chunk for column in values for chunk in column.chunks]
            distinct = pc.unique(pa.chunked_array(chunks, arrow_type(key.type)))
            # a padded row has NULL where its scan has none
            one = pc.field(key.name).isin(distinct.drop_null()) | pc.field(key.name).is_null()
            found = one if found is None else found & one
        return found


def _named(visible: tuple[tuple[str, str], ...], prefix: str) -> str:
    return ", ".join(f"{prefix}c{i} AS {quoted(n)}" for i, (n, _) in enumerate(visible))


def _times() -> str:
    return "LATERAL VIEW EXPLODE(SEQUENCE(1L, CAST(_new_times AS BIGINT))) AS _copy"


def _steps(found: pa.Table, fold: Fold) -> pa.Table:
    """The state's change, without steps that change nothing."""
    table = found.select([*fold.state_names, CN])
    zero = None
    for s in fold.all_sums:
        same = pc.equal(table[s.name], pa.scalar(0).cast(table[s.name].type))
        zero = same if zero is None else pc.and_(zero, same)
    assert zero is not None
    return table.filter(pc.invert(zero))


def _rows(found: pa.Table, fold: Fold) -> pa.Table:
    """The change of what is shown: old rows out, new rows in."""
    changed = found.filter(pc.invert(found[SAME]))
    parts = []
    for moment, sign in (("old", -1), ("new", 1)):
        count = pc.multiply(changed[f"_{moment}_times"].cast(pa.int64()), sign)
        columns = {name: changed[f"_{moment}_{name}"] for name, _ in fold.outputs}
        part = pa.table({**columns, COUNT: count, CN: changed[CN]})
        parts.append(part.filter(pc.not_equal(count, 0)))
    return pa.concat_tables(parts)


def _exploded(wide: str, fold: Fold) -> str:
    """The same, by Spark."""
    structs = ", ".join(
        "NAMED_STRUCT("
        + "".join(f"'{name}', _{moment}_{name}, " for name, _ in fold.outputs)
        + f"'{COUNT}', CAST({sign}_{moment}_times AS BIGINT))"
        for moment, sign in (("old", "-"), ("new", ""))
    )
    names = ", ".join([*(name for name, _ in fold.outputs), COUNT])
    return (
        f"SELECT {names}, {CN} FROM {wide} LATERAL VIEW INLINE(ARRAY({structs})) _x AS {names} "
        f"WHERE NOT {SAME} AND {COUNT} <> 0"
    )


def _below(found: pa.Table, fold: Fold) -> str | None:
    low = found.filter(found[BELOW])
    if not low.num_rows:
        return None
    first = low.slice(0, 1).to_pylist()[0]
    return f"group {[first[k] for k in fold.key_names]} at cn {first[CN]}"
