"""Rolling a node's base and its state forward by the net effect of a change (the papers' *apply*).

Only the buckets that the net change touches are rewritten; the others keep their files. The number
of buckets follows the base's size (a power of two near bytes / 64 MB); when it should be another,
the whole base is rewritten once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from steadyview.catalog.views import Base, ViewRow
from steadyview.changes import arrow_type
from steadyview.delta import FileEntry
from steadyview.engine.frames import Frames
from steadyview.engine.window_input import ARROW_LIMIT
from steadyview.warehouse.states import States
from steadyview.warehouse.view_store import CN, ViewStore, ddl, quoted

_BUCKET_BYTES = 64 * 1024 * 1024
_BUCKET = re.compile(r"_bucket=(\d+)-(\d+)/")
RESIDUAL_SHARE = 0.1
RESIDUAL_FILES = 50
RESIDUAL_ROWS = 20_000
"""Up to so many rows a residual costs a reader nothing to speak of, however small the base is."""


def state_due(store: ViewStore, row: ViewRow) -> bool:
    """Whether the steps have outgrown the state that they belong to."""
    if not store.shape.state or row.cn is None or store.state_cn() >= row.cn:
        return False
    steps = [f for f in store.steps.files() if f.may_hold(CN, store.state_cn() + 1, row.cn)]
    rows = sum(f.rows for f in store.state.files())
    many = sum(f.rows for f in steps) > max(rows * RESIDUAL_SHARE, RESIDUAL_ROWS)
    return many or len(steps) > RESIDUAL_FILES


def due(store: ViewStore, row: ViewRow) -> bool:
    """Whether the residual has outgrown the base.

    It has with more than 50 files, or with more than 10 % of the base's rows and 20,000.
    """
    if row.cn is None or row.base_cn is None or row.kind == "recomputed":
        return False
    residual = store.delta_files(row.delta_version or 0, row.base_cn, row.cn)
    rows = sum(f.rows for f in store.base.files(row.base_version))
    share = sum(f.rows for f in residual) > max(rows * RESIDUAL_SHARE, RESIDUAL_ROWS)
    return share or len(residual) > RESIDUAL_FILES


def rolls(store: ViewStore, base: Base, cn: int, delta_version: int) -> bool:
    """Whether the rows at cn may be others than those of the base."""
    return cn > base.cn and bool(store.delta_files(delta_version, base.cn, cn))


def few_states(store: ViewStore, cn: int) -> pa.Table | None:
    """The node's state at a cn, summed by Arrow; None where that is no work for Arrow.

    Arrow tells of no overflow: sums that could pass the limits of their types are Spark's.
    """
    if sum(f.rows for f in store.state_files(cn)) > ARROW_LIMIT:
        return None
    rows = store.state_rows(cn)
    if not all(_safe(rows[name], type_) for name, type_ in store.shape.sums):
        return None
    keys = [name for name, _ in store.shape.keys]
    sums = [name for name, _ in store.shape.sums]
    found = rows.group_by(keys, use_threads=False).aggregate([(name, "sum") for name in sums])
    table = pa.table(
        {name: found[name] for name in keys}
        | {n: found[f"{n}_sum"].cast(arrow_type(t)) for n, t in store.shape.sums}
    )
    if not keys:
        return table
    moved = [pc.fill_null(pc.not_equal(table[n], _zero(table[n])), False) for n in sums]
    return table.filter(reduce(pc.or_, moved))


def _safe(values: pa.ChunkedArray, type_: str) -> bool:
    """Whether no sum of some of the values can pass the type's limit."""
    arrow = arrow_type(type_)
    if not (pa.types.is_integer(arrow) or pa.types.is_decimal(arrow)):
        return False
    limit: int = 2 ** (arrow.bit_width - 1) if pa.types.is_integer(arrow) else 10**arrow.precision
    scale = 0 if pa.types.is_integer(arrow) else arrow.scale
    ends = pc.min_max(values).as_py()
    most = max((abs(v) for v in ends.values() if v is not None), default=0)
    reached = int(Decimal(most).scaleb(scale)) * max(len(values), 1)
    return reached < limit


def _zero(values: pa.ChunkedArray) -> pa.Scalar:
    return pa.scalar(0).cast(values.type)


def state_at(frames: Frames, store: ViewStore, cn: int) -> DataFrame:
    """The node's state at a cn that its stored state does not lie behind."""
    at, paths = store.state_cn(), [f.path for f in store.state_files(cn)]
    rows = frames.parquet("state", paths, ddl([*store.shape.state, (CN, "BIGINT")]))
    keys = ", ".join(name for name, _ in store.shape.keys)
    sums = ", ".join(f"CAST(SUM({n}) AS {t}) AS {n}" for n, t in store.shape.sums)
    kept = " OR ".join(f"SUM({n}) <> 0" for n, _ in store.shape.sums)
    by = f" GROUP BY {keys} HAVING {kept}" if keys else ""
    wanted = f"{CN} IS NULL OR ({CN} > {at} AND {CN} <= {cn})"
    listed = f"{keys}, {sums}" if keys else sums
    return frames.spark.sql(f"SELECT {listed} FROM {rows} WHERE {wanted}{by}")


class Applier:
    """Writes bases of one view."""

    def __init__(self, spark: SparkSession, store: ViewStore) -> None:
        self._spark = spark
        self._store = store

    def replace(self, rows: pa.Table | str, cn: int) -> Base:
        """All rows anew, at hand or of a query.

        A base that a crash left unpublished goes with the old ones.
        """
        old = [f.relative for f in self._store.base.files()]
        if isinstance(rows, pa.Table):
            return self._store.write_base(rows, cn, old)
        return self._write(rows, cn, 1, old)

    def roll(self, base: Base, cn: int, delta_version: int) -> Base:
        """The base at cn from the one before it."""
        if not rolls(self._store, base, cn, delta_version):
            return base
        files = self._store.base.files(base.version)
        wanted, found = _buckets_for(files), _buckets_of(files)
        touched = None
        if found == wanted > 1:
            touched = self._touched(base.cn, cn, delta_version, wanted)
        old = [f for f in files if touched is None or _bucket(f) in touched]
        paths = [f.path for f in old]
        states = States(self._spark, self._store)
        try:
            rows = states.rows_sql(base, cn, delta_version, paths)
            return self._write(rows, cn, wanted, [f.relative for f in old])
        finally:
            states.drop()

    def roll_state(self, cn: int) -> None:
        """The node's state at cn from the one before it, and the steps between."""
        few = few_states(self._store, cn)
        if few is not None:
            self._store.write_state(few, cn)
            return
        frames = Frames(self._spark)
        try:
            self._store.write_state(state_at(frames, self._store, cn), cn)
        finally:
            frames.drop()

    def _touched(self, after: int, upto: int, version: int, buckets: int) -> set[int]:
        states = States(self._spark, self._store)
        changed = states.changed_sql(after, upto, version)
        hashed = _hash_of([name for name, _ in self._store.shape.stored], buckets)
        found = self._spark.sql(f"SELECT DISTINCT {hashed} AS b FROM {changed}").toArrow()
        states.drop()
        return set(found["b"].to_pylist())

    def _write(self, rows: str, cn: int, buckets: int, removes: list[str]) -> Base:
        hashed = _hash_of([quoted(name) for name, _ in self._store.shape.visible], buckets)
        frame = self._spark.sql(
            f"SELECT *, CONCAT('{buckets}-', {hashed}) AS _bucket FROM ({rows})"
        )
        return self._store.write_base(frame, cn, removes)


def _hash_of(columns: Sequence[str], buckets: int) -> str:
    if buckets == 1 or not columns:
        return "0L"
    return f"PMOD(XXHASH64({', '.join(columns)}), {buckets})"


def _bucket(file: FileEntry) -> int:
    found = _BUCKET.search(file.relative)
    return int(found[2]) if found else 0


def _buckets_of(files: Sequence[FileEntry]) -> int:
    """Into how many buckets the files are cut; 0 if they disagree."""
    cuts = {int(found[1]) for f in files if (found := _BUCKET.search(f.relative))}
    return cuts.pop() if len(cuts) == 1 else (1 if not cuts else 0)


def _buckets_for(files: Sequence[FileEntry]) -> int:
    """The power of two near bytes / 64 MB."""
    size = sum(f.size for f in files)
    buckets = 1
    while buckets * _BUCKET_BYTES * 1.5 < size:
        buckets *= 2
    return buckets
