"""Where one view's rows live: a view delta and a base, both Delta tables.

The view delta holds, for every cn that changed the view, the change (`engine.statements` names its
columns). Its writes are named by the last cn they cover, so a delta that was committed but not
published before a crash is found and adopted, never computed twice.

The base is a plain table of the view's visible rows at one cn, one row per copy; an aggregate
view's base carries its state columns last. Its files lie in folders `_bucket={B}-{b}`: rows with
hash b of B.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from steadyview.catalog.views import Base, ViewRow
from steadyview.changes import arrow_type
from steadyview.crash_points import crash_point
from steadyview.delta import AddedFile, FileEntry, ParquetSink, Table, slug
from steadyview.delta.parquet import reading
from steadyview.engine.statements import delta_columns, summary_columns
from steadyview.views.definition import Definition, Types

DELTA, BASE = "delta", "base"
Check = Callable[[Sequence[AddedFile]], None]
"""Looks at files that were written, before they count; raises if they must not."""


@dataclass(frozen=True)
class Shape:
    """A view's stored columns. `definition` is None for a recomputed view."""

    definition: Definition | None
    types: Types

    @property
    def visible(self) -> list[tuple[str, str]]:
        """What a reader of the view sees."""
        return list(self.types.outputs)

    @property
    def states(self) -> list[tuple[str, str]]:
        """State columns behind the visible ones; none but for aggregate views."""
        if self.definition is None or self.definition.grouping is None:
            return []
        return summary_columns(self.definition, self.types)

    @property
    def base(self) -> list[tuple[str, str]]:
        """Columns of the base."""
        return self.visible + self.states

    @property
    def delta(self) -> list[tuple[str, str]]:
        """Columns of the view delta."""
        assert self.definition is not None
        return delta_columns(self.definition, self.types)


@dataclass(frozen=True)
class Appended:
    """The delta table's version that holds the changes, and how many rows were added to it."""

    version: int
    rows: int


class ViewStore:
    """The two tables of one view."""

    def __init__(self, root: Path, row: ViewRow, shape: Shape) -> None:
        self.name = row.name
        self.shape = shape
        self.folder = root / "views" / f"{slug(row.name)}-{row.id}"
        self.delta = Table(self.folder / DELTA)
        self.base = Table(self.folder / BASE)

    def create(self) -> None:
        """Make the tables that are missing."""
        Table.create(self.base.path, _arrow(self.shape.base))
        if self.shape.definition is not None:
            Table.create(self.delta.path, _arrow(self.shape.delta), ranged=("_cn",))

    def remove(self) -> None:
        """Delete everything of the view. Idempotent."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def propagated(self) -> int:
        """The last cn that the view delta covers by a write of its own; -1 if there is none."""
        return self.delta.app_version(DELTA)

    def append(
        self, change: DataFrame, after: int, upto: int, check: Check, files: int | None = None
    ) -> Appended:
        """Append the changes of (after, upto], once `check` has seen the files.

        Raises what Spark raises when an expression of the view fails, and what `check` raises;
        nothing is committed then.
        """
        folder = self.delta.unused_folder(DELTA, upto)
        writer = change.coalesce(files) if files else change
        with _gone_on_failure(folder):
            writer.write.mode("overwrite").parquet(str(folder))
            added = self.delta.collect(folder, {"_cn": (after + 1, upto)})
            check(added)
        crash_point("delta-written")
        if not added:
            shutil.rmtree(folder, ignore_errors=True)
            return Appended(self.delta.version(), 0)
        return self._committed(added, upto)

    def append_rows(self, changes: pa.Table, upto: int) -> Appended:
        """The same for rows at hand, columns as in the delta, the last of them at cn `upto`."""
        if self.delta.done(DELTA, upto) or not changes.num_rows:
            return Appended(self.delta.version(), 0)
        path = self.delta.unused_folder(DELTA, upto) / "part-0.parquet"
        with _gone_on_failure(path.parent):
            sink = ParquetSink(self.delta.path, path, _arrow(self.shape.delta), ("_cn",))
            sink.write(changes)
            added = sink.close()
        crash_point("delta-written")
        return self._committed([added], upto)

    def _committed(self, added: list[AddedFile], upto: int) -> Appended:
        version = self.delta.commit(DELTA, upto, added, metadata={"cn": str(upto)})
        crash_point("delta-committed")
        return Appended(version, sum(file.rows for file in added))

    def write_base(self, rows: DataFrame, cn: int, removes: list[str]) -> Base:
        """Make `rows` (base columns and `_bucket`) the base at cn, in place of `removes`."""
        if not self.base.done(BASE, cn):
            folder = self.base.unused_folder(BASE, cn)
            with _gone_on_failure(folder):
                rows.write.mode("overwrite").partitionBy("_bucket").parquet(str(folder))
            crash_point("base-written")
            added = self.base.collect(folder)
            self.base.commit(BASE, cn, added, removes, {"cn": str(cn)})
            crash_point("base-committed")
        return self.newest_base()

    def newest_base(self) -> Base:
        """The base that the table itself knows: after a crash it may be ahead of the catalog's."""
        return Base(self.base.app_version(BASE), self.base.version())

    def changed_at(self, row: ViewRow) -> set[int]:
        """The cns at which the published view delta changed the view; for small deltas."""
        paths = [f.path for f in self.delta.files(row.delta_version)]
        with reading(self.delta.path, paths):
            return {cn for p in paths for cn in pq.read_table(p, columns=["_cn"])[0].to_pylist()}

    def delta_files(self, version: int, after: int, upto: int) -> list[FileEntry]:
        """The files of a published version that may hold changes of (after, upto]."""
        if upto <= after:
            return []
        return [f for f in self.delta.files(version) if f.may_hold("_cn", after + 1, upto)]


@contextmanager
def _gone_on_failure(folder: Path) -> Iterator[None]:
    """Leave nothing of a failed write: on a full disk every byte counts."""
    try:
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def ddl(columns: list[tuple[str, str]]) -> str:
    """Columns as a Spark schema, names quoted."""
    return ", ".join(f"{quoted(name)} {type_}" for name, type_ in columns)


def quoted(name: str) -> str:
    """A column name as a Spark identifier."""
    return "`" + name.replace("`", "``") + "`"


def _arrow(columns: list[tuple[str, str]]) -> pa.Schema:
    return pa.schema([(name, arrow_type(type_)) for name, type_ in columns])
