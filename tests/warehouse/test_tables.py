"""A view's table and its files by Arrow alone: whatever happens to the bag, both are the bag."""

from __future__ import annotations

import json
import random
from collections import Counter
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from steadyview.catalog.views import ViewRow
from steadyview.changes import arrow_type
from steadyview.delta import ParquetSink, Table
from steadyview.errors import ViewStopped
from steadyview.runtime import file_reading
from steadyview.warehouse import owned_table, tables
from steadyview.warehouse.owned_table import TableOwner, remove_others, vacuum
from steadyview.warehouse.row_files import copies, net_change, row_groups, rows_of, without
from steadyview.warehouse.table_mark import TABLES, read_mark, table_folder
from steadyview.warehouse.tables import ViewTable
from steadyview.warehouse.view_store import Shape, ViewStore

COLUMNS = (("a b", "BIGINT"), ("x.y", "DOUBLE"), ("t", "STRING"), ("d", "DECIMAL(10,2)"))
VALUES = (
    (1, 2, None),
    (0.0, -0.0, float("nan"), None),
    ("", "x", None),
    (Decimal("1.50"), None),
)


def plain(row: tuple) -> tuple:
    """As SQL groups rows: NaN is NaN, and there is one zero."""
    return tuple(repr(v + 0.0) if isinstance(v, float) else v for v in row)


class Kept:
    """A view's own files, kept by hand: a base at one cn, and the delta of every cn."""

    def __init__(self, root: Path, dice: random.Random) -> None:
        self.root, self.dice = root, dice
        self.row = ViewRow(
            *(7, "v", "", "complete", "incremental", "", "", "active", None, None, None),
            *(0, 0, 0, 0, 0, 0),
        )
        self.states: list[Counter] = [Counter()]
        self.store = ViewStore(root, self.row, Shape(COLUMNS))
        self.store.create()
        self.bag: list[tuple] = []

    def moved(self, changes: int) -> None:
        """One more cn: rows come, and often rows that are there go, with another zero."""
        cn, rows = (self.row.cn or 0) + 1, []
        going = self.dice.choice((0.0, 0.1, 0.6))
        for _ in range(changes):
            if self.bag and self.dice.random() < going:
                gone = self.bag.pop(self.dice.randrange(len(self.bag)))
                zero = self.dice.choice((0.0, -0.0))
                gone = tuple(zero if v == 0 and isinstance(v, float) else v for v in gone)
                rows.append((*gone, -1, cn))
            else:
                come = tuple(self.dice.choice(values) for values in VALUES)
                self.bag.append(come)
                rows.append((*come, 1, cn))
        names = [n for n, _ in self.store.shape.delta]
        schema = pa.schema([(n, arrow_type(t)) for n, t in self.store.shape.delta])
        data = dict(zip(names, zip(*rows, strict=True), strict=True)) if rows else {}
        table = pa.table({n: pa.array(data.get(n, ()), schema.field(n).type) for n in names})
        path = self.store.delta.folder_for("delta", cn) / "part-0.parquet"
        sink = ParquetSink(self.store.delta.path, path, schema, ("_cn",))
        sink.write(table)
        added = [sink.close()] if rows else []
        version = self.store.delta.commit("delta", cn, added) if added else self.row.delta_version
        self.row = _with(self.row, cn=cn, delta_version=version)
        self.states.append(Counter(map(plain, self.bag)))

    def rolled(self) -> None:
        """The base is that of the newest cn, in several files."""
        cn = self.row.cn
        folder = self.store.base.folder_for("base", cn)
        schema = pa.schema([(n, arrow_type(t)) for n, t in COLUMNS])
        added = []
        for i in range(0, len(self.bag), 9):
            sink = ParquetSink(self.store.base.path, folder / f"part-{i}.parquet", schema)
            some = list(zip(*self.bag[i : i + 9], strict=True))
            arrays = [pa.array(v, f.type) for v, f in zip(some, schema, strict=True)]
            sink.write(pa.table(arrays, schema=schema))
            added.append(sink.close())
        old = [f.relative for f in self.store.base.files()]
        version = self.store.base.commit("base", cn, added, old)
        self.row = _with(self.row, base_cn=cn, base_version=version)


def _with(row: ViewRow, **changes: object) -> ViewRow:
    return ViewRow(**{**row.__dict__, **changes})


def bag_of(table: pa.Table) -> Counter:
    return Counter(plain(tuple(r.values())) for r in table.to_pylist())


@pytest.fixture(params=range(3))
def kept(request, tmp_path: Path) -> Kept:
    return Kept(tmp_path / "größer warehouse", random.Random(request.param))


def bring(kept: Kept) -> bool:
    work = kept.root / "work" / str(kept.dice.random())
    work.mkdir(parents=True)
    owner = TableOwner(kept.root, "cafe", work)
    return ViewTable(owner, ViewStore(kept.root, kept.row, Shape(COLUMNS)), kept.row, None).bring()


def test_the_rows_at_every_cn_are_those_of_the_nearest_base_and_the_delta_between(
    kept: Kept, monkeypatch
):
    monkeypatch.setattr(file_reading, "PART", 1)
    for step in range(12):
        kept.moved(kept.dice.randrange(8))
        if step == 6:
            kept.rolled()
    base = kept.row.base_cn
    assert base == 7
    for cn, expected in enumerate(kept.states):
        change = net_change(kept.store, kept.row.delta_version, base, cn)
        files = kept.store.base.files(kept.row.base_version)
        groups, missing = without(row_groups(files), change.gone, COLUMNS)
        assert not missing.num_rows
        found = sum((bag_of(r) for g in groups for r in rows_of(g, COLUMNS)), Counter())
        assert sum(g.left for g in groups) == found.total()
        come = copies(change.come, COLUMNS)
        assert found + bag_of(come) == expected, cn
        parts = file_reading._cut(COLUMNS, groups, come)
        assert len(parts) == max(len(groups), 1), "one task for each"
        assert sum((bag_of(r) for p in parts for r in p.rows()), Counter()) == expected


def test_a_table_is_the_bag_of_its_cn_after_any_changes(kept: Kept, monkeypatch):
    monkeypatch.setattr(owned_table, "_ROWS", 12)
    for limit, value in (("_SMALL", 8), ("_MANY", 2)):
        monkeypatch.setattr(tables, limit, value)
    folder, written = table_folder(kept.root, TABLES, "v"), {}
    for step in range(20):
        kept.moved(kept.dice.choice((0, 1, 3, 30)))
        if kept.dice.random() < 0.2:
            kept.rolled()
        if kept.dice.random() < 0.3:
            continue
        assert bring(kept)
        assert not bring(kept), "nothing is new"
        table = DeltaTable(folder)
        (commit,) = table.history(1)
        assert json.loads(commit["userMetadata"])["cn"] == kept.row.cn == read_mark(folder).cn
        assert table.to_pyarrow_table().schema.names == [n for n, _ in COLUMNS]
        written[table.version()] = kept.states[kept.row.cn]
        assert bag_of(table.to_pyarrow_table()) == written[table.version()], step
        sizes = pa.table(table.get_add_actions()).column("num_records").to_pylist()
        assert sum(rows < 8 for rows in sizes) <= 3, "small files are written as one"
    for version, expected in written.items():
        assert bag_of(DeltaTable(folder, version=version).to_pyarrow_table()) == expected
    modes = [c["operationParameters"].get("mode") for c in DeltaTable(folder).history()]
    assert modes.count("Overwrite") == 1, "the first one; from then on what has changed"
    bring(kept)
    vacuum(kept.root, "v", timedelta(0))
    assert read_mark(folder).cn == kept.row.cn
    assert bag_of(DeltaTable(folder).to_pyarrow_table()) == kept.states[kept.row.cn]


def test_a_row_that_is_to_go_and_is_not_there_is_an_error_with_its_values(kept: Kept):
    ghost = (1, 0.0, "never was", None)
    kept.bag = [ghost]
    while ghost in kept.bag:
        kept.moved(1)
    with pytest.raises(ViewStopped) as found:
        bring(kept)
    assert "'t': 'never was'" in str(found.value.detail)
    assert not table_folder(kept.root, TABLES, "v").exists()


def test_only_tables_of_this_warehouse_are_removed(kept: Kept):
    kept.moved(3)
    bring(kept)
    parent = table_folder(kept.root, TABLES, "v").parent
    Table.create(parent / "foreign", pa.schema([("a", pa.int64())]))
    (parent / "notes").mkdir()
    for number, (views, left) in enumerate(
        ((["v"], {"v", "foreign", "notes"}), (["V2"], {"foreign", "notes"}))
    ):
        work = kept.root / f"removing-{number}"
        work.mkdir()
        remove_others(TableOwner(kept.root, "cafe", work), TABLES, views)
        assert {f.name for f in parent.iterdir()} == left
