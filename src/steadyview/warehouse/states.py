"""The rows of a view at a cn: the nearest base, plus or minus the view delta between.

state(cn)  =  base(c)  +  sum{ delta(s) : c < s <= cn }        if c <= cn
state(cn)  =  base(c)  -  sum{ delta(s) : cn < s <= c }        otherwise
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from steadyview.catalog.views import Base, ViewRow
from steadyview.delta.files import check_whole
from steadyview.engine.bags import matching, net, rows_plus
from steadyview.engine.frames import Frames
from steadyview.engine.statements import sound, visible_sql
from steadyview.errors import OutsideRetention
from steadyview.warehouse.impossible import below_zero
from steadyview.warehouse.view_store import ViewStore, ddl, quoted


class States:
    """Puts the rows of one view together; its temporary views live until `drop`, or with Spark."""

    def __init__(self, spark: SparkSession, store: ViewStore) -> None:
        self._spark = spark
        self._store = store
        self._frames = Frames(spark)

    def drop(self) -> None:
        """Forget the temporary views: what was made of them has been computed."""
        self._frames.drop()

    def visible(self, row: ViewRow, bases: Sequence[Base], cn: int) -> DataFrame:
        """What a reader of the view sees at cn."""
        check_readable(row, cn)
        base = nearest(bases, cn)
        if row.kind == "recomputed":
            return self._whole(base)
        return self._spark.sql(self._visible_sql(base, cn, row.delta_version or 0))

    def _whole(self, base: Base) -> DataFrame:
        name = self._base_view(base, None)
        return self._spark.sql(f"SELECT {_listed(self._store.shape.visible)} FROM {name}")

    def _visible_sql(self, base: Base, cn: int, version: int) -> str:
        shape = self._store.shape
        if not shape.states:
            return self.rows_sql(base, cn, version)
        assert shape.definition is not None
        states = f"({self.states_sql(base, cn, version)})"
        return visible_sql(shape.definition, shape.types, states)

    def rows_sql(
        self, base: Base, cn: int, version: int, base_files: Sequence[str] | None = None
    ) -> str:
        """The rows of a SELECT-PROJECT-JOIN view at cn, named as the view names them."""
        shape = self._store.shape
        view = self._base_view(base, base_files)
        stored = [f"o{i}" for i in range(len(shape.visible))]
        plain = ", ".join(
            f"{quoted(n)} AS {o}" for (n, _), o in zip(shape.visible, stored, strict=True)
        )
        named = ", ".join(
            f"{o} AS {quoted(n)}" for (n, _), o in zip(shape.visible, stored, strict=True)
        )
        residual = self._residual(base.cn, cn, version)
        if residual is None:
            return f"SELECT {_listed(shape.visible)} FROM {view}"
        parts = (
            f"WITH b_ AS (SELECT {plain} FROM {view}), n_ AS ({net(residual, stored, '_count')})"
        )
        refusal = below_zero(self._store.name, shape, cn)
        return f"SELECT {named} FROM ({parts} {rows_plus('b_', 'n_', stored, refusal)})"

    def states_sql(
        self, base: Base, cn: int, version: int, base_files: Sequence[str] | None = None
    ) -> str:
        """The state rows of an aggregate view at cn: group keys and state columns."""
        shape = self._store.shape
        names = [n for n, _ in shape.states]
        view = self._base_view(base, base_files)
        residual = self._residual(base.cn, cn, version)
        keys = [n for n in names if n.startswith("_g")]
        sums = [n for n in names if not n.startswith("_g")]
        count = sound(sums, below_zero(self._store.name, shape, cn))
        if not keys:
            return _global(view, residual, count, dict(shape.states))
        if residual is None:
            return f"SELECT {', '.join(names)} FROM {view}"
        return _summed(view, residual, count, dict(shape.states))

    def changed_sql(self, after: int, upto: int, version: int) -> str | None:
        """The view delta of (after, upto] as a FROM item, None if there is nothing in it."""
        return self._delta_view(after, upto, version)

    def _base_view(self, base: Base, files: Sequence[str] | None) -> str:
        listed = self._store.base.files(base.version)
        wanted = [f for f in listed if files is None or f.path in files]
        check_whole(wanted)
        return self._frames.parquet("base", [f.path for f in wanted], ddl(self._store.shape.base))

    def _residual(self, base_cn: int, cn: int, version: int) -> str | None:
        """The signed delta between base and cn, as a FROM item."""
        after, upto = min(base_cn, cn), max(base_cn, cn)
        view = self._delta_view(after, upto, version)
        if view is None or cn >= base_cn:
            return view
        signed = [n for n, _ in self._store.shape.delta if _is_measure(n)]
        kept = [n for n, _ in self._store.shape.delta if not _is_measure(n)]
        columns = ", ".join(kept + [f"-{n} AS {n}" for n in signed])
        return f"(SELECT {columns} FROM {view})"

    def _delta_view(self, after: int, upto: int, version: int) -> str | None:
        files = self._store.delta_files(version, after, upto)
        if not files:
            return None
        check_whole(files)
        view = self._frames.parquet("delta", [f.path for f in files], ddl(self._store.shape.delta))
        if all(f.holds_only("_cn", after + 1, upto) for f in files):
            # no number in the text where none is needed: Spark would compile the statement anew
            return view
        return f"(SELECT * FROM {view} WHERE _cn > {after} AND _cn <= {upto})"


def nearest(bases: Sequence[Base], cn: int) -> Base:
    """The newest base at or before cn; if there is none, the oldest after it."""
    before = [b for b in bases if b.cn <= cn]
    return before[-1] if before else bases[0]


def check_readable(row: ViewRow, cn: int) -> None:
    """OutsideRetention unless the view's rows at cn are kept."""
    if row.cn is None:
        raise OutsideRetention(
            f'view "{row.name}" has no state yet', hint="steadyview run builds its first state"
        )
    if not row.oldest_cn <= cn <= row.cn:
        raise OutsideRetention(
            f'view "{row.name}" cannot be read at cn {cn}',
            detail=f"its oldest cn is {row.oldest_cn}, its newest {row.cn}",
        )


def _global(view: str, residual: str | None, count: str, types: dict[str, str]) -> str:
    """The one state row of an aggregate without GROUP BY; zeros where nothing was ever counted.

    `count`: the state row's count, checked; in a filter, which nobody can do without.
    """
    every = ", ".join(types)
    total = ", ".join(f"CAST(COALESCE(SUM({n}), 0) AS {t}) AS {n}" for n, t in types.items())
    more = f" UNION ALL SELECT {every} FROM {residual}" if residual else ""
    state = f"SELECT {total} FROM (SELECT {every} FROM {view}{more})"
    return f"SELECT {every} FROM ({state}) WHERE {count} >= 0"


def _summed(view: str, residual: str, count: str, types: dict[str, str]) -> str:
    """Base states plus summary deltas; untouched groups pass through without a shuffle."""
    keys = [n for n in types if n.startswith("_g")]
    sums = [n for n in types if n not in keys]
    total = ", ".join(f"CAST(SUM({n}) AS {types[n]}) AS {n}" for n in sums)
    every = ", ".join(keys + sums)
    listed = ", ".join(keys)
    same = matching("b", "n", keys)
    kept = ", ".join(f"b.{n}" for n in keys + sums)
    parts = f"WITH n_ AS (SELECT {listed}, {total} FROM {residual} GROUP BY {listed})"
    touched = (
        f"SELECT {listed}, {total} FROM ("
        f"SELECT /*+ BROADCAST(n) */ {kept} FROM {view} b LEFT SEMI JOIN n_ n ON {same} "
        f"UNION ALL SELECT {every} FROM n_) GROUP BY {listed}"
    )
    return (
        f"{parts} SELECT /*+ BROADCAST(n) */ {kept} FROM {view} b LEFT ANTI JOIN n_ n ON {same} "
        f"UNION ALL SELECT {every} FROM ({touched}) WHERE {count} > 0"
    )


def _is_measure(column: str) -> bool:
    return column == "_count" or column.startswith(("_nonnull_", "_sum_"))


def _listed(columns: Sequence[tuple[str, str]]) -> str:
    return ", ".join(quoted(n) for n, _ in columns)
