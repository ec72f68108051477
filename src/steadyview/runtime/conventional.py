"""The culprit, kept beside: the same batches and the same answers, without compensation.

Conventional maintenance takes a source's answer as if it showed the state the update saw (Zhuge et
al., PDIS 1996, Example 1). Recording what it would have made of the very stream that the views were
maintained on shows how far it goes wrong; nothing of it reaches a view.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from steadyview.catalog import ViewRow
from steadyview.engine.frames import Frames
from steadyview.warehouse.states import States
from steadyview.warehouse.view_store import ViewStore, ddl


@dataclass(frozen=True)
class Deviation:
    """Of one view: rows (or groups) that would be wrong by now, and commits whose change was."""

    view: str
    rows_wrong: int
    commits_wrong: int
    commits: int

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


class Shadow:
    """Collects uncompensated view deltas below `folder`; computed when they are asked for.

    The answers and logs of a batch stay in a folder of its own below, so that recording costs the
    batch nothing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = count(1)
        self._changes: dict[str, list[tuple[int, int, Callable[[], DataFrame]]]] = {}

    def views(self) -> list[str]:
        """The views for which something was recorded."""
        return sorted(self._changes)

    def batch_folder(self) -> Path:
        """Where a batch keeps what its recorded changes will be computed from."""
        folder = self._folder / f"batch-{next(self._numbers)}"
        folder.mkdir(parents=True)
        return folder

    def record(self, view: str, change: Callable[[], DataFrame], after: int, upto: int) -> None:
        """Keep how the uncompensated change of (after, upto] is made."""
        self._changes.setdefault(view, []).append((after, upto, change))

    def _written(self, view: str, upto: int, change: Callable[[], DataFrame]) -> list[str]:
        path = self._folder / f"{view}-{upto}"
        change().coalesce(1).write.mode("overwrite").parquet(str(path))
        return [str(p) for p in sorted(path.glob("*.parquet"))]

    def deviation(self, spark: SparkSession, store: ViewStore, row: ViewRow) -> Deviation:
        """Compare with the view's own delta over the recorded cns."""
        changes = [c for c in self._changes[store.name] if c[1] <= (row.cn or 0)]
        after, upto = changes[0][0], changes[-1][1]
        columns = [n for n, _ in store.shape.delta if n != "_cn"]
        measures = [n for n in columns if n == "_count" or n.startswith(("_nonnull_", "_sum_"))]
        identity = [n for n in columns if n not in measures]
        frames = Frames(spark)
        paths = [p for _, to, change in changes for p in self._written(store.name, to, change)]
        shadow = frames.parquet("shadow", paths, ddl(store.shape.delta))
        real = States(spark, store).changed_sql(after, upto, row.delta_version or 0)
        listed = ", ".join([*columns, "_cn"])
        minus = ", ".join([*identity, *(f"-{m} AS {m}" for m in measures), "_cn"])
        both = f"SELECT {listed} FROM {shadow}"
        if real is not None:
            both += f" UNION ALL SELECT {minus} FROM {real}"
        view = frames.query("both", both)
        found = Deviation(
            store.name,
            _unequal(spark, view, identity, measures),
            _unequal(spark, view, [*identity, "_cn"], measures, distinct="_cn"),
            upto - after,
        )
        frames.drop()
        return found


def _unequal(
    spark: SparkSession,
    view: str,
    by: list[str],
    measures: list[str],
    distinct: str | None = None,
) -> int:
    """How many groups do not sum to zero, or how many values of `distinct` they have."""
    group = f" GROUP BY {', '.join(by)}" if by else ""
    wrong = " OR ".join(f"SUM({m}) <> 0" for m in measures)
    inner = f"SELECT {distinct or '1'} AS x FROM {view}{group} HAVING {wrong}"
    count = "COUNT(DISTINCT x)" if distinct else "COUNT(*)"
    row = spark.sql(f"SELECT {count} AS n FROM ({inner})").first()
    return int(row["n"]) if row else 0
