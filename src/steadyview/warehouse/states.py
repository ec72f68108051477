"""The rows of a view at a cn: the nearest base, plus or minus the view delta between.

state(cn)  =  base(c)  +  sum{ delta(s) : c < s <= cn }        if c <= cn
state(cn)  =  base(c)  -  sum{ delta(s) : cn < s <= c }        otherwise
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from steadyview.catalog.views import Base, ViewRow
from steadyview.delta.files import check_whole
from steadyview.engine.bags import net, rows_plus
from steadyview.engine.frames import Frames
from steadyview.errors import OutsideRetention
from steadyview.warehouse.impossible import below_zero
from steadyview.warehouse.view_store import CN, COUNT, ViewStore, ddl, quoted


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
        return self._spark.sql(self.rows_sql(base, cn, row.delta_version or 0))

    def rows_sql(
        self, base: Base, cn: int, version: int, base_files: Sequence[str] | None = None
    ) -> str:
        """The visible rows at cn, named as the view names them."""
        shape = self._store.shape
        view = self._base_view(base, base_files)
        stored = [name for name, _ in shape.stored]
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

    def difference_sql(self, rows: str, upto: int, base: Base, after: int, version: int) -> str:
        """What leads from the state at `after` to the rows of a FROM item, those at `upto`.

            difference  =  rows  -  base(c)  -  sum{ delta(s) : c < s <= after }

        As rows of the view delta, all at `upto`.
        """
        shape, view = self._store.shape, self._base_view(base, None)
        stored = [name for name, _ in shape.stored]
        cast = ", ".join(f"CAST({n} AS {type_}) AS {n}" for n, type_ in shape.stored)
        both = zip(shape.visible, stored, strict=True)
        plain = ", ".join(f"{quoted(n)} AS {o}" for (n, _), o in both)
        listed = ", ".join(stored)
        parts = [f"SELECT {cast}, 1L AS _n FROM {rows}", f"SELECT {plain}, -1L AS _n FROM {view}"]
        if (residual := self._residual(base.cn, after, version)) is not None:
            parts.append(f"SELECT {listed}, -{COUNT} AS _n FROM {residual}")
        changed = net(f"({' UNION ALL '.join(parts)})", stored, "_n")
        return f"SELECT {listed}, _d AS {COUNT}, CAST({upto} AS BIGINT) AS {CN} FROM ({changed})"

    def changed_sql(self, after: int, upto: int, version: int) -> str | None:
        """The view delta of (after, upto] as a FROM item, None if there is nothing in it."""
        return self._delta_view(after, upto, version)

    def _base_view(self, base: Base, files: Sequence[str] | None) -> str:
        listed = self._store.base.files(base.version)
        wanted = [f for f in listed if files is None or f.path in files]
        check_whole(wanted)
        return self._frames.parquet(
            "base", [f.path for f in wanted], ddl(self._store.shape.visible)
        )

    def _residual(self, base_cn: int, cn: int, version: int) -> str | None:
        """The signed delta between base and cn, as a FROM item."""
        after, upto = min(base_cn, cn), max(base_cn, cn)
        view = self._delta_view(after, upto, version)
        if view is None or cn >= base_cn:
            return view
        kept = [n for n, _ in self._store.shape.delta if n != COUNT]
        return f"(SELECT {', '.join(kept)}, -{COUNT} AS {COUNT} FROM {view})"

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
            hint="ask for one in between; steadyview status shows the newest",
        )


def _listed(columns: Sequence[tuple[str, str]]) -> str:
    return ", ".join(quoted(n) for n, _ in columns)
