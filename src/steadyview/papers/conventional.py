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

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from steadyview.catalog import ViewRow
from steadyview.warehouse.view_store import CN, COUNT, ViewStore


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
    """Collects uncompensated changes; computed when they are asked for.

    The answers and logs of a batch stay until then, so that recording costs the batch nothing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = count(1)
        self._changes: dict[str, list[tuple[int, int, Callable[[], pa.Table]]]] = {}

    def views(self) -> list[str]:
        """The views for which something was recorded."""
        return sorted(self._changes)

    def batch_folder(self) -> Path:
        """Where a batch keeps what its recorded changes will be computed from."""
        folder = self._folder / f"batch-{next(self._numbers)}"
        folder.mkdir(parents=True)
        return folder

    def record(self, view: str, after: int, upto: int, change: Callable[[], pa.Table]) -> None:
        """Keep how the uncompensated change of (after, upto] is made."""
        self._changes.setdefault(view, []).append((after, upto, change))

    def deviation(self, store: ViewStore, row: ViewRow) -> Deviation:
        """Compare with the node's own change over the recorded cns: of rows, or of its state."""
        changes = [c for c in self._changes[store.name] if c[1] <= (row.cn or 0)]
        after, upto = changes[0][0], changes[-1][1]
        table, columns = store.delta, [*store.shape.stored, (COUNT, "BIGINT")]
        if store.shape.state:
            table, columns = store.steps, store.shape.state
        measures = [n for n, _ in (store.shape.sums or ((COUNT, "BIGINT"),))]
        identity = [n for n, _ in columns if n not in measures]
        files = [f.path for f in table.files() if f.may_hold(CN, after + 1, upto)]
        real = [pq.read_table(f, columns=[*identity, *measures, CN]) for f in files]
        shadow = [change().select([*identity, *measures, CN]) for _, _, change in changes]
        schema = shadow[0].schema
        both = pa.concat_tables([*shadow, *(_negated(t.cast(schema), measures) for t in real)])
        return Deviation(
            store.name,
            _unequal(both, identity, measures).num_rows,
            pc.count_distinct(_unequal(both, [*identity, CN], measures)[CN]).as_py(),
            upto - after,
        )


def _negated(table: pa.Table, measures: list[str]) -> pa.Table:
    for name in measures:
        place = table.column_names.index(name)
        table = table.set_column(place, name, pc.negate(table[name]))
    return table


def _unequal(both: pa.Table, by: list[str], measures: list[str]) -> pa.Table:
    """The groups that do not sum to zero."""
    summed = both.group_by(by).aggregate([(m, "sum") for m in measures])
    wrong = None
    for m in measures:
        column = summed[f"{m}_sum"]
        one = pc.not_equal(column, pa.scalar(0).cast(column.type))
        wrong = one if wrong is None else pc.or_(wrong, one)
    return summed.filter(wrong)
