"""What goes wrong in one view concerns that view: the others go on, and it is told as one fact."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import steadyview
from steadyview.algebra import Bag
from steadyview.catalog import Published
from steadyview.engine.failures import described
from steadyview.errors import DefiniteError, SteadyviewError, TransientError, ViewStopped
from steadyview.runtime import trouble
from steadyview.runtime.batch import Batch
from steadyview.runtime.maintainer import Maintainer
from steadyview.runtime.schemas import known_relations
from steadyview.runtime.warehouse import Warehouse
from steadyview.warehouse.view_store import NodeChange
from tests.system.databases import SqliteFile, write_project
from tests.system.maintained import capturing, read, stored

VIEWS = {
    "fine": "SELECT id, name FROM s.p",
    "keyed": "SELECT p.name, t.v FROM s.p JOIN s.t ON p.id = t.i + 1",
    "total": "SELECT SUM(v) AS total FROM s.t",
    "kinds": "SELECT i % 2 AS kind, COUNT(*) AS n, SUM(v) AS total FROM s.t GROUP BY i % 2",
}
LARGEST = 2**63 - 1


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteFile]:
    database = SqliteFile(tmp_path / "s.db")
    database.create("p", "id INTEGER, name TEXT")
    database.create("t", "i INTEGER, v INTEGER")
    database.writer().execute("INSERT INTO p VALUES (1, 'a'), (2, 'b')")
    database.writer().execute("INSERT INTO t VALUES (0, 5), (1, 6)")
    yield database
    database.close()


@pytest.fixture
def wh(database: SqliteFile, tmp_path: Path, spark: SparkSession) -> Iterator[Warehouse]:
    folder = write_project(tmp_path / "project", {"s": database}, VIEWS)
    with steadyview.open(folder, spark=spark) as opened:
        opened.run_once()
        yield opened


def stands(wh: Warehouse) -> dict[str, tuple[str, int | None]]:
    return {v.name: (v.state, v.cn) for v in wh.status().views}


def error_of(wh: Warehouse, view: str) -> str:
    return {v.name: v.error or "" for v in wh.status().views}[view]


def test_a_join_key_or_a_sum_that_overflows_stops_its_view_just_before(
    wh: Warehouse, database: SqliteFile
) -> None:
    writer = database.writer()
    with capturing(wh) as admit:
        for statement in (
            "INSERT INTO t VALUES (5, 1)",
            f"INSERT INTO t VALUES ({LARGEST}, 1)",
            f"INSERT INTO t VALUES (0, {LARGEST})",
            "INSERT INTO p VALUES (3, 'c')",
        ):
            writer.execute(statement)
            admit("s")
    wh.run_once()
    assert stands(wh) == {
        "fine": ("active", 4),
        "keyed": ("stopped", 1),
        "total": ("stopped", 2),
        "kinds": ("stopped", 2),
    }
    assert "ARITHMETIC_OVERFLOW" in error_of(wh, "keyed")
    assert "BIGINT" in error_of(wh, "total")
    assert read(wh, "keyed") == Bag.of([("a", 5), ("b", 6)])
    assert read(wh, "total") == Bag.of([(13,)])
    assert read(wh, "kinds") == Bag.of([(0, 1, 5), (1, 3, 8)])
    assert all(v.equal for v in wh.verify())


def test_a_fault_of_ours_in_one_view_leaves_it_where_it_is_and_is_tried_again(
    wh: Warehouse, database: SqliteFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = Batch._stored

    def faulty(batch: Batch, share: Any, *change: Any) -> Any:
        if share.work.plan.name == "kinds":
            raise ZeroDivisionError("by a fault of ours")
        return stored(batch, share, *change)

    monkeypatch.setattr(Batch, "_stored", faulty)
    database.writer().execute("INSERT INTO t VALUES (1, 7)")
    with pytest.raises(SteadyviewError, match='fault of its own in view "kinds"') as found:
        wh.run_once()
    assert not isinstance(found.value, DefiniteError | TransientError)
    others = {name: stand for name, stand in stands(wh).items() if name != "kinds"}
    assert set(others.values()) == {("active", 1)}
    assert stands(wh)["kinds"] == ("active", 0)
    assert "ZeroDivisionError: by a fault of ours (1 times" in error_of(wh, "kinds")
    with capturing(wh) as admit:
        maintainer = Maintainer(
            wh._parts, wh._plans(known_relations(wh._parts)), lambda s, _: admit(s)
        )
        sources = frozenset({"s"})
        maintainer.cycle(sources, building=False)
        assert not maintainer.waiting(sources, building=False)
        monkeypatch.undo()
        monkeypatch.setattr(trouble.Faults, "waits", lambda *_: False)
        maintainer.cycle(sources, building=False)
    assert stands(wh)["kinds"] == ("active", 1)
    assert error_of(wh, "kinds") == ""
    assert all(v.equal for v in wh.verify(["kinds", "total"]))


BELOW_ZERO = {
    "fine": ({"c0": [9], "c1": ["ghost"], "_count": [-1]}, '{"id":9,"name":"ghost"}'),
    "kinds": (
        {"c0": [7], "c1": [1], "c2": [5], "_count": [-1]},
        '{"kind":7,"n":1,"total":5}',
    ),
    "total": ({"c0": [5], "_count": [-1]}, '{"total":5}'),
}


def test_a_row_fewer_than_zero_times_is_an_error_that_stops_its_view(
    wh: Warehouse, database: SqliteFile
) -> None:
    """As a change that passed the capture by would leave it: the view delta takes what is not."""
    database.writer().execute("INSERT INTO t VALUES (7, 0)")
    wh.run_once()
    database.writer().execute("INSERT INTO p VALUES (3, 'c')")
    database.writer().execute("INSERT INTO t VALUES (8, 0)")
    with capturing(wh) as admit:
        cn = admit("s")
    for view, (change, row) in BELOW_ZERO.items():
        _tamper(wh, view, change, cn)
        for ask in (f"SELECT * FROM {view}", f"SELECT COUNT(*) FROM {view}"):
            with pytest.raises(PySparkException) as found:
                wh.query(ask).collect()
            told = described(found.value)
            assert isinstance(told, ViewStopped)
            assert told.message == f'view "{view}" would hold a row fewer than zero times'
            assert f"row {row}, at or before cn {cn}: " in str(told.detail)
            assert told.hint == f"run: steadyview view rebuild {view}"
            # who reads with Spark itself can read it as well
            assert told.message in str(found.value)
    wh.run_once()
    assert {name: state for name, (state, _) in stands(wh).items()} == {
        "fine": "stopped",
        "kinds": "stopped",
        "total": "stopped",
        "keyed": "active",
    }
    assert all("fewer than zero times" in error_of(wh, view) for view in BELOW_ZERO)


def test_a_group_of_fewer_than_no_rows_stops_its_view(
    wh: Warehouse, database: SqliteFile
) -> None:
    store = stored(wh, "kinds")
    names = [n for n, _ in store.shape.state]
    gone = pa.table({n: pa.array([1 if i == 0 else -9], pa.int64()) for i, n in enumerate(names)})
    rows = pa.table({**{n: pa.array([], pa.int64()) for n, _ in store.shape.delta}})
    database.writer().execute("INSERT INTO t VALUES (1, 7)")
    with capturing(wh) as admit:
        cn = admit("s")
    # as if a commit before had taken away what was never there
    store.append(NodeChange(rows, gone.append_column("_cn", pa.array([cn], pa.int64()))), cn)
    wh._catalog.views.publish([replace_cn(wh, "kinds", cn)])
    database.writer().execute("INSERT INTO t VALUES (3, 7)")
    wh.run_once()
    assert stands(wh)["kinds"] == ("stopped", cn)
    assert "fewer than zero times" in error_of(wh, "kinds")


def replace_cn(wh: Warehouse, view: str, cn: int) -> Published:
    row = wh._catalog.views.get(view)
    assert row.base_cn is not None
    assert row.base_version is not None
    return Published(row.id, cn, row.delta_version or 0, row.base_cn, row.base_version)


def _tamper(wh: Warehouse, view: str, change: dict[str, list[Any]], cn: int) -> None:
    store, row = stored(wh, view), wh._catalog.views.get(view)
    assert row.base_cn is not None
    assert row.base_version is not None
    added = store.append(NodeChange(pa.table({**change, "_cn": [cn]})), cn)
    published = Published(row.id, cn, added.version, row.base_cn, row.base_version)
    wh._catalog.views.publish([published])


def test_a_query_that_cannot_be_computed_is_one_fact(wh: Warehouse) -> None:
    with pytest.raises(PySparkException) as found:
        wh.query("SELECT 1 / (id - 1) FROM fine").collect()
    told = described(found.value)
    assert isinstance(told, DefiniteError)
    assert told.message == "Spark cannot compute a value"
    assert "DIVIDE_BY_ZERO" in str(told.detail)
    assert "== SQL" not in str(told.detail)
    assert described(ValueError("no error of Spark's")) is None
