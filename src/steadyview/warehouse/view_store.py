"""Where one node's rows live, a view's or a hidden one's: up to four Delta tables.

    delta   the change of its visible rows: `c0`, `c1`, ..., `_count` (signed) and `_cn`
    base    its visible rows at one cn, one row per copy, under the names that people know
    steps   the change of its state, per key and cn; only of a node that keeps one
    state   its state at one cn: keys and sums

A write of delta or steps is named by the last cn it covers, so what was committed but not published
before a crash is found and adopted: each table takes only what lies beyond its own last cn. State
and steps are read by whoever keeps the node, delta and base by everybody. The files of a base lie
in folders `_bucket={B}-{b}`: rows with hash b of B. What other programs read is not here: see
`tables.py`.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from steadyview.catalog.views import Base, ViewRow
from steadyview.changes import arrow_type
from steadyview.crash_points import crash_point
from steadyview.delta import AddedFile, FileEntry, ParquetSink, Table, slug
from steadyview.delta.durability import make_folder
from steadyview.delta.parquet import CHECKED, reading

_FOLDER = re.compile(r".+-\d+")
DELTA, BASE, STEPS, STATE = "delta", "base", "steps", "state"
COUNT, CN = "_count", "_cn"
NODES = "nodes"
"""The folder of the warehouse in which all of this lies."""


@dataclass(frozen=True)
class Shape:
    """A node's stored columns, with their types.

    `keys` and `sums` are those of its state, empty where it keeps none. `incremental`: its change
    is kept; otherwise only whole states are.
    """

    visible: tuple[tuple[str, str], ...] = ()
    keys: tuple[tuple[str, str], ...] = ()
    sums: tuple[tuple[str, str], ...] = ()
    incremental: bool = True

    @property
    def stored(self) -> list[tuple[str, str]]:
        """The visible columns under the names `c0`, `c1`, ..."""
        return [(f"c{i}", type_) for i, (_, type_) in enumerate(self.visible)]

    @property
    def delta(self) -> list[tuple[str, str]]:
        """Columns of the view delta."""
        return [*self.stored, (COUNT, "BIGINT"), (CN, "BIGINT")]

    @property
    def state(self) -> list[tuple[str, str]]:
        """Columns of the state; none where there is none."""
        return [*self.keys, *self.sums]


@dataclass(frozen=True)
class NodeChange:
    """What a batch did to a node: rows of its delta and, where it keeps a state, of its steps.

    Either tables at hand, or folders of Parquet files that Spark wrote below the tables.
    """

    rows: pa.Table | Path
    steps: pa.Table | Path | None = None


@dataclass(frozen=True)
class Appended:
    """The delta table's version that holds the changes, and how many rows were added to it."""

    version: int
    rows: int


class ViewStore:
    """The tables of one node."""

    def __init__(self, root: Path, row: ViewRow, shape: Shape) -> None:
        self.name = row.name
        self.shape = shape
        self.folder = root / NODES / f"{slug(row.made_as)}-{row.id}"
        self.delta = Table(self.folder / DELTA)
        self.base = Table(self.folder / BASE)
        self.steps = Table(self.folder / STEPS)
        self.state = Table(self.folder / STATE)

    def create(self) -> None:
        """Make the tables that are missing."""
        Table.create(self.base.path, _arrow(self.shape.visible))
        if self.shape.incremental:
            Table.create(self.delta.path, _arrow(self.shape.delta), ranged=(CN,))
        if self.shape.state:
            Table.create(self.state.path, _arrow(self.shape.state))
            stepped = [*self.shape.state, (CN, "BIGINT")]
            Table.create(self.steps.path, _arrow(stepped), ranged=(CN,))

    def remove(self) -> None:
        """Delete everything of the view. Idempotent."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def propagated(self) -> int:
        """The last cn that the delta, and the steps, cover by a write of their own; -1: none."""
        reached = self.delta.app_version(DELTA)
        return min(reached, self.steps.app_version(STEPS)) if self.shape.state else reached

    def half_written(self) -> int | None:
        """Up to which cn the steps reach where the delta does not: of a write that was cut short.

        Whoever ends it has to end it there: steps that are stored are not stored again.
        """
        steps = self.steps.app_version(STEPS) if self.shape.state else -1
        return steps if steps > self.delta.app_version(DELTA) else None

    def append(self, change: NodeChange, upto: int) -> Appended:
        """Append the change up to cn `upto`; what a table has already is not added again."""
        if change.steps is not None:
            self._appended(self.steps, STEPS, change.steps, upto)
            crash_point("steps-committed")
        return self._appended(self.delta, DELTA, change.rows, upto)

    def _appended(self, table: Table, app: str, rows: pa.Table | Path, upto: int) -> Appended:
        reached = table.app_version(app)
        if reached >= upto:
            return Appended(table.version(), 0)
        if isinstance(rows, Path):
            added = self._moved(table, app, rows, upto)
        else:
            added = self._written(table, app, rows.filter(pc.greater(rows[CN], reached)), upto)
        crash_point("delta-written")
        if not added:
            return Appended(table.version(), 0)
        version = table.commit(app, upto, added, metadata={"cn": str(upto)})
        crash_point("delta-committed")
        return Appended(version, sum(file.rows for file in added))

    def _written(self, table: Table, app: str, rows: pa.Table, upto: int) -> list[AddedFile]:
        if not rows.num_rows:
            return []
        path = table.unused_folder(app, upto) / "part-0.parquet"
        with _gone_on_failure(path.parent):
            ranged = (CN,) if CN in rows.column_names else ()
            sink = ParquetSink(table.path, path, table.schema(), ranged)
            sink.write(rows)
            return [sink.close()]

    def _moved(self, table: Table, app: str, folder: Path, upto: int) -> list[AddedFile]:
        """Files that Spark wrote below the table become its own."""
        after = table.app_version(app)
        return table.collect(folder, {CN: (max(after, 0) + 1, upto)})

    def write_state(self, rows: DataFrame | pa.Table, cn: int) -> None:
        """Make `rows` (state columns) the whole state at cn."""
        if self.state.done(STATE, cn):
            return
        old = [f.relative for f in self.state.files()]
        if isinstance(rows, pa.Table):
            added = self._written(self.state, STATE, rows, cn)
        else:
            folder = self.state.unused_folder(STATE, cn)
            with _gone_on_failure(folder):
                rows.write.mode("overwrite").parquet(str(folder))
            added = self.state.collect(folder)
        self.state.commit(STATE, cn, added, old, {"cn": str(cn)})
        crash_point("state-committed")

    def state_cn(self) -> int:
        """The cn of the stored state; -1: there is none."""
        return self.state.app_version(STATE)

    def state_files(self, upto: int) -> list[FileEntry]:
        """The files whose rows, summed per key, are the state at cn `upto`.

        Those of steps may hold later ones too, and have `_cn`.
        """
        at = self.state_cn()
        steps = [f for f in self.steps.files() if f.may_hold(CN, at + 1, upto)]
        return [*self.state.files(), *steps]

    def state_rows(self, upto: int, wanted: pc.Expression | None = None) -> pa.Table:
        """The rows of these files that belong to the state at cn `upto`; several for a key."""
        schema = pa.schema([(n, arrow_type(t)) for n, t in self.shape.state])
        schema = schema.append(pa.field(CN, pa.int64()))
        paths, cn = [f.path for f in self.state_files(upto)], pc.field(CN)
        if not paths:
            return schema.empty_table()
        here = cn.is_null() | ((cn > self.state_cn()) & (cn <= upto))
        with reading(self.folder, paths):
            found = ds.dataset(paths, schema=schema, format=CHECKED)
            return found.to_table(filter=here if wanted is None else here & wanted)

    def write_base(self, rows: DataFrame | pa.Table, cn: int, removes: list[str]) -> Base:
        """Make `rows` (base columns; of Spark also `_bucket`) the base at cn, for `removes`."""
        if not self.base.done(BASE, cn):
            if isinstance(rows, pa.Table):
                added = self._written(self.base, BASE, rows, cn)
            else:
                folder = self.base.unused_folder(BASE, cn)
                with _gone_on_failure(folder):
                    rows.write.mode("overwrite").partitionBy("_bucket").parquet(str(folder))
                added = self.base.collect(folder)
            crash_point("base-written")
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


def adopt_folders(root: Path) -> None:
    """Take over what lies where these folders were in warehouses of before: among the views.

    A view's name has no dash, so none of these can be a view's own table.
    """
    for folder in (root / "views").glob("*-*"):
        if _FOLDER.fullmatch(folder.name) and (folder / BASE).is_dir():
            make_folder(root / NODES)
            folder.rename(root / NODES / folder.name)


@contextmanager
def _gone_on_failure(folder: Path) -> Iterator[None]:
    """Leave nothing of a failed write: on a full disk every byte counts."""
    try:
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def ddl(columns: Sequence[tuple[str, str]]) -> str:
    """Columns as a Spark schema, names quoted."""
    return ", ".join(f"{quoted(name)} {type_}" for name, type_ in columns)


def quoted(name: str) -> str:
    """A column name as a Spark identifier."""
    return "`" + name.replace("`", "``") + "`"


def _arrow(columns: Sequence[tuple[str, str]]) -> pa.Schema:
    return pa.schema([(name, arrow_type(type_)) for name, type_ in columns])
