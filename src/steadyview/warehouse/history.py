"""Which commits changed a view, and by how many visible rows: what its view delta says."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from steadyview.catalog.views import ViewRow
from steadyview.delta.failures import told
from steadyview.warehouse.view_store import CN, COUNT, ViewStore


@dataclass(frozen=True)
class Changed:
    """Visible rows that a commit added and removed (an update of a row is one of each)."""

    cn: int
    added: int
    removed: int


def changes(store: ViewStore, row: ViewRow, limit: int) -> list[Changed]:
    """The newest commits that changed the view, newest first."""
    newest, start = row.cn or 0, row.oldest_cn
    files = store.delta_files(row.delta_version or 0, start, newest)
    if not files:
        return []
    with told(store.delta.path):
        read = [pq.ParquetFile(f.path).read(columns=[CN, COUNT]) for f in files]
    rows = pa.concat_tables(read)
    cn, count = rows[CN], rows[COUNT]
    added, removed = (pc.max_element_wise(n, 0) for n in (count, pc.negate(count)))
    per_row = pa.table({"cn": cn, "added": added, "removed": removed})
    within = pc.and_(pc.greater(cn, start), pc.less_equal(cn, newest))
    summed = per_row.filter(within).group_by("cn").aggregate([("added", "sum"), ("removed", "sum")])
    found = summed.sort_by([("cn", "descending")]).slice(0, limit).to_pylist()
    return [Changed(r["cn"], r["added_sum"], r["removed_sum"]) for r in found]
