"""Ranges of a view delta replaced by their net effect (the paper's section 5).

    rows of (a, b]   ->   per row the sum of its counts, unless it is zero, labelled b

State(a) and state(b) stay what they are, and nothing else needs the rows in between: no range
reaches over a cn at which anybody stands. Which ranges there are is in the catalog (`Gaps`), and a
range counts from the moment it is recorded there: whoever reads its rows one by one, before the
files are replaced or in an older version of the table, takes them together by `step_ends`.
Replaced again, a range stays what it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from steadyview.catalog import Gap
from steadyview.delta import FileEntry
from steadyview.delta.files import check_whole
from steadyview.engine.frames import Frames
from steadyview.plans.versions import step_ends
from steadyview.warehouse.change_rows import cns_of
from steadyview.warehouse.view_store import CN, COUNT, ViewStore, ddl


def replace_ranges(
    spark: SparkSession, store: ViewStore, ranges: Sequence[Gap], folder: Path
) -> int:
    """Have the view delta hold the net effect of these ranges; the version of it that does.

    Files are rewritten that hold rows of a range with more than one cn, and no others.
    """
    version = store.delta.version()
    steps = [(gap.low, gap.high) for gap in ranges]
    moved, files = _moved(store, version, steps)
    if not files:
        return version
    check_whole(files)
    frames = Frames(spark)
    try:
        shape = store.shape
        rows = frames.parquet("delta", [f.path for f in files], ddl(shape.delta))
        ends = frames.few("ends", moved, [("cn", "BIGINT"), ("last", "BIGINT")], folder)
        listed = ", ".join(name for name, _ in shape.stored)
        one_by_one = (
            f"SELECT {listed}, {COUNT} AS _n, COALESCE(e.last, d.{CN}) AS {CN}"
            f" FROM {rows} d LEFT JOIN {ends} e ON d.{CN} = e.cn"
        )
        frame = frames.sql(
            f"SELECT {listed}, SUM(_n) AS {COUNT}, {CN} FROM ({one_by_one})"
            f" GROUP BY {listed}, {CN} HAVING SUM(_n) <> 0 ORDER BY {CN}"
        )
        return store.replace_changes(frame, version, [f.relative for f in files])
    finally:
        frames.drop()


def _moved(
    store: ViewStore, version: int, steps: Sequence[tuple[int, int]]
) -> tuple[pa.Table, list[FileEntry]]:
    """The cns that become others, with what they become; and the files with rows of such steps."""
    none = np.zeros(0, dtype=np.int64)
    if not steps:
        return pa.table({"cn": none, "last": none}), []
    listed = store.delta_files(version, steps[0][0], steps[-1][1])
    cns = {file.relative: cns_of(store, file) for file in listed}
    found = np.unique(np.concatenate([none, *cns.values()]))
    ends = step_ends(found, steps)
    changed = np.unique(ends[ends != found])
    files = [f for f in listed if np.isin(step_ends(cns[f.relative], steps), changed).any()]
    moved = found != ends
    return pa.table({"cn": found[moved], "last": ends[moved]}), files
