"""Which commits changed a view, and by how many visible rows: what its view delta says.

A range that was compressed is one of them, by its net effect, also where that is nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from steadyview.catalog import Gap, ViewRow
from steadyview.delta import FileEntry
from steadyview.delta.failures import told
from steadyview.plans.versions import step_ends
from steadyview.warehouse.view_store import CN, COUNT, ViewStore


@dataclass(frozen=True)
class Changed:
    """Visible rows that a commit added and removed (an update of a row is one of each)."""

    cn: int
    added: int
    removed: int


def changes(
    store: ViewStore, row: ViewRow, ranges: Sequence[Gap], limit: int
) -> list[Changed]:
    """The newest commits that changed the view, newest first; `ranges` are those compressed."""
    newest, start = row.cn or 0, row.oldest_cn
    files = store.delta_files(row.delta_version or 0, start, newest)
    ended = {gap.high: Changed(gap.high, 0, 0) for gap in ranges if start < gap.high <= newest}
    counted = _counted(store, files, ranges, start, newest) if files else None
    if counted is not None:
        rows = counted.sort_by([("cn", "descending")]).slice(0, limit).to_pylist()
        ended |= {r["cn"]: Changed(r["cn"], r["added_sum"], r["removed_sum"]) for r in rows}
    return sorted(ended.values(), key=lambda changed: -changed.cn)[:limit]


def _counted(
    store: ViewStore, files: Sequence[FileEntry], ranges: Sequence[Gap], start: int, newest: int
) -> pa.Table:
    """Per cn the rows that were added and removed."""
    with told(store.delta.path):
        read = [pq.ParquetFile(f.path).read(columns=[CN, COUNT]) for f in files]
    rows = pa.concat_tables(read)
    steps, count = [(gap.low, gap.high) for gap in ranges], rows[COUNT]
    cn = pa.array(step_ends(rows[CN].to_numpy(), steps), pa.int64())
    added, removed = (pc.max_element_wise(n, 0) for n in (count, pc.negate(count)))
    per_row = pa.table({"cn": cn, "added": added, "removed": removed})
    within = pc.and_(pc.greater(cn, start), pc.less_equal(cn, newest))
    return per_row.filter(within).group_by("cn").aggregate([("added", "sum"), ("removed", "sum")])
