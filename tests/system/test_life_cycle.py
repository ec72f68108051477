"""Views come, change, go and are called otherwise; what readers see goes on meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import steadyview
from steadyview.algebra import Bag
from steadyview.errors import ConfigError, ViewRefused
from steadyview.runtime import schedule
from steadyview.runtime.maintainer import Maintainer
from steadyview.runtime.schemas import known_relations
from steadyview.runtime.status import ViewStatus
from steadyview.runtime.warehouse import Warehouse
from tests.crash.running import Running, published
from tests.system.databases import SqliteFile, Writer, write_project, write_view
from tests.system.maintained import Admit, capturing, read
from tests.system.wall import Wall

VIEWS = {
    "kinds": "SELECT kind, COUNT(*) AS n, SUM(v) AS total FROM s.t GROUP BY kind",
    "largest": "SELECT kind, MAX(v) AS v FROM s.t GROUP BY kind",
    "big": "SELECT k.kind, k.total FROM kinds k JOIN largest l ON l.kind = k.kind WHERE l.v > 1",
    "other": "SELECT id FROM s.t",
}
ALL = frozenset({"s"})


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteFile]:
    database = SqliteFile(tmp_path / "s.db")
    database.create("t", "id INTEGER, kind TEXT, v INTEGER")
    database.writer().execute("INSERT INTO t VALUES (1, 'a', 10), (2, 'a', 20), (3, 'b', 1)")
    yield database
    database.close()


@pytest.fixture
def wh(database: SqliteFile, tmp_path: Path, spark: SparkSession) -> Iterator[Warehouse]:
    folder = write_project(tmp_path / "project", {"s": database}, VIEWS)
    with steadyview.open(folder, spark=spark) as opened:
        opened.run_once()
        yield opened


class Steps:
    """The work of a run, step by step."""

    def __init__(self, wh: Warehouse, admit: Admit) -> None:
        self._wh, self._admit = wh, admit
        self.reconcile()

    def reconcile(self) -> None:
        """Take up the view files as they are."""

        def wait_for(source: str, _: object) -> None:
            self._admit(source)

        plans = self._wh._plans(known_relations(self._wh._parts))
        self._maintainer = Maintainer(self._wh._parts, plans, wait_for)
        self._maintainer.reconcile()

    def batch(self) -> None:
        self._maintainer.cycle(ALL, building=False)

    def build(self) -> None:
        self._maintainer.cycle(ALL, building=True)

    def batch_of_shown(self) -> None:
        """What is built beside falls behind."""
        self._maintainer.cycle(ALL, building=False, which=lambda k: not k.row.replacement)

    def turn(self) -> None:
        self._admit("s")
        self._maintainer.turn(ALL)


@contextmanager
def steps(wh: Warehouse) -> Iterator[Steps]:
    with capturing(wh) as admit:
        yield Steps(wh, admit)


def view_of(wh: Warehouse, name: str) -> ViewStatus:
    return {v.name: v for v in wh.status().views}[name]


def stands(wh: Warehouse) -> dict[str, tuple[str, int | None]]:
    return {v.name: (v.state, v.cn) for v in wh.status().views}


def kept(wh: Warehouse) -> set[str]:
    """The names of all rows of the catalog, those beside marked."""
    views = wh._catalog.views
    return {*(r.name for r in views.all()), *(f"{r.name}'" for r in views.replacements())}


def test_a_changed_view_is_built_beside_while_the_old_one_and_its_readers_go_on(
    wh: Warehouse, database: SqliteFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = database.writer()
    hidden = {n for n in kept(wh) if n.startswith("~")}
    write_view(wh.project.root, "kinds", "SELECT kind, SUM(v) + 1000 AS total FROM s.t GROUP BY 1")
    with steps(wh) as run:
        assert kept(wh) == {*VIEWS, *hidden, "kinds'", "big'"}
        writer.execute("INSERT INTO t VALUES (4, 'b', 2)")
        run.batch()
        assert set(stands(wh).values()) == {("active", 1)}
        assert read(wh, "kinds") == Bag.of([("a", 2, 30), ("b", 2, 3)]), "old columns, new rows"
        assert read(wh, "big") == Bag.of([("a", 30), ("b", 3)])
        assert all(v.equal for v in wh.verify())
        _goes_back(wh, run)
        _is_changed_again(wh, run, writer)
        run.build()
        assert view_of(wh, "kinds").cn == 2
        writer.execute("INSERT INTO t VALUES (6, 'c', 5)")
        run.batch_of_shown()
        assert [r.cn for r in wh._catalog.views.replacements()] == [2, 2]
        monkeypatch.setattr(schedule, "FAR_BEHIND", 0)
        writer.execute("UPDATE t SET v = 6 WHERE id = 6")
        run.turn()
        turns = [(b.from_cn, b.to_cn) for b in wh._catalog.batches.recent(2)]
        assert turns == [(2, 4), (3, 4)], "the others first"
    assert kept(wh) == {*VIEWS, *hidden}, "swapped, nothing left over"
    assert set(stands(wh).values()) == {("active", 4)}
    assert read(wh, "kinds") == Bag.of([("a", 2030), ("b", 2008), ("c", 2006)])
    assert read(wh, "big") == Bag.of([("a", 2030), ("b", 2008), ("c", 2006)])
    assert all(v.equal for v in wh.verify())


def _goes_back(wh: Warehouse, run: Steps) -> None:
    """With its old text again there is nothing to build."""
    ids = {r.name: r.id for r in wh._catalog.views.all()}
    write_view(wh.project.root, "kinds", VIEWS["kinds"])
    run.reconcile()
    assert not wh._catalog.views.replacements()
    assert {r.name: r.id for r in wh._catalog.views.all()} == ids


def _is_changed_again(wh: Warehouse, run: Steps, writer: Writer) -> None:
    """What is built is of the newest text; the old one is fresh also while that is built."""
    sql = "SELECT kind, SUM(v) + {} AS total FROM s.t GROUP BY kind"
    write_view(wh.project.root, "kinds", sql.format(1000))
    run.reconcile()
    first = {r.id for r in wh._catalog.views.replacements()}
    write_view(wh.project.root, "kinds", sql.format(2000))
    run.reconcile()
    assert first.isdisjoint({r.id for r in wh._catalog.views.replacements()})
    writer.execute("INSERT INTO t VALUES (5, 'b', 5)")
    run.batch()
    assert read(wh, "kinds") == Bag.of([("a", 2, 30), ("b", 3, 8)])


def test_a_view_goes_on_while_its_changed_file_is_refused_and_holds_up_what_it_reads(
    wh: Warehouse, database: SqliteFile
) -> None:
    writer, root = database.writer(), wh.project.root
    write_view(root, "other", "SELECT id, no_such FROM s.t")
    write_view(root, "kinds", "SELECT kind, COUNT(*) AS n FROM s.t GROUP BY kind")
    write_view(root, "new", "SELECT nothing FROM s.t")
    writer.execute("INSERT INTO t VALUES (4, 'b', 2)")
    wh.run_once()
    assert stands(wh) == {**dict.fromkeys(VIEWS, ("active", 1)), "new": ("refused", None)}
    assert read(wh, "other") == Bag.of([(1,), (2,), (3,), (4,)])
    assert read(wh, "kinds") == Bag.of([("a", 2, 30), ("b", 2, 3)])
    found = {v["name"]: v for v in wh.status().to_dict()["views"]}
    assert "no_such" in found["other"]["refusal"]["error"]
    assert found["other"]["refusal"]["code"] == "UNKNOWN_COLUMN"
    assert "total" in found["big"]["refusal"]["error"], "kinds has no such column any more"
    assert found["kinds"]["refusal"]["code"] == "READER"
    assert '"big"' in found["kinds"]["refusal"]["error"]
    assert found["largest"]["refusal"] is None
    writer.execute("INSERT INTO t VALUES (5, 'b', 5)")
    write_view(root, "big", "SELECT k.kind FROM kinds k WHERE n > 2")
    write_view(root, "other", VIEWS["other"])
    wh.run_once()
    assert {v.refusal for v in wh.status().views} == {None}
    assert read(wh, "kinds") == Bag.of([("a", 2), ("b", 3)])
    assert read(wh, "big") == Bag.of([("b",)])
    assert all(v.equal for v in wh.verify())
    _goes_on_while_the_changed_one_cannot_be_computed(wh, writer)


def _goes_on_while_the_changed_one_cannot_be_computed(wh: Warehouse, writer: Writer) -> None:
    write_view(wh.project.root, "kinds", "SELECT kind, SUM(9 DIV v) AS n FROM s.t GROUP BY kind")
    writer.execute("INSERT INTO t VALUES (6, 'c', 0)")
    wh.run_once()
    assert read(wh, "kinds") == Bag.of([("a", 2), ("b", 3), ("c", 1)])
    refusal = view_of(wh, "kinds").refusal
    assert refusal is not None
    assert (refusal.code, "DIVIDE_BY_ZERO" in refusal.error) == ("BUILD", True)
    assert view_of(wh, "big").cn == wh.status().cn
    assert not wh._catalog.views.replacements()
    writer.execute("UPDATE t SET v = 9 WHERE id = 6")
    wh.run_once()
    assert read(wh, "kinds") == Bag.of([("a", 0), ("b", 14), ("c", 1)])
    assert {v.refusal for v in wh.status().views if v.name != "new"} == {None}


def test_a_view_whose_file_is_gone_is_paused_until_it_is_back(
    wh: Warehouse, database: SqliteFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, files = database.writer(), wh.project.root / "views"
    before = {r.name: r.id for r in wh._catalog.views.all()}
    for name in ("big", "kinds", "largest"):
        (files / f"{name}.sql").unlink()
    writer.execute("INSERT INTO t VALUES (4, 'b', 2)")
    wh.run_once()
    paused = dict.fromkeys(("big", "kinds", "largest"), ("paused", 0))
    assert stands(wh) == {**paused, "other": ("active", 1)}
    assert {r.name: r.id for r in wh._catalog.views.all()} == before, "hidden nodes too"
    assert read(wh, "big") == Bag.of([("a", 30)])
    assert 'view "big" is paused' in wh.query_at("SELECT * FROM big").warnings[0]
    assert view_of(wh, "big").paused_seconds is not None
    for name in ("big", "kinds", "largest"):
        write_view(wh.project.root, name, VIEWS[name])
    wh.run_once()
    assert {r.name: r.id for r in wh._catalog.views.all()} == before, "nothing was built anew"
    assert set(stands(wh).values()) == {("active", 1)}
    assert read(wh, "big") == Bag.of([("a", 30), ("b", 3)])
    _is_kept_for_its_readers(wh, writer)
    _is_dropped_when_states_are_no_longer_retained(wh, monkeypatch)


def _is_kept_for_its_readers(wh: Warehouse, writer: Writer) -> None:
    """A view whose file alone is gone goes on while others read it."""
    (wh.project.root / "views" / "largest.sql").unlink()
    writer.execute("UPDATE t SET v = 7 WHERE id = 3")
    wh.run_once()
    assert set(stands(wh).values()) == {("active", 2)}
    assert read(wh, "big") == Bag.of([("a", 30), ("b", 9)])
    found = {v.name: v.refusal for v in wh.status().views}
    assert found["largest"] is not None
    assert (found["largest"].code, '"big"' in found["largest"].error) == ("FILE_GONE", True)
    assert found["big"] is not None, "it cannot be planned"
    write_view(wh.project.root, "big", "SELECT kind FROM kinds")
    wh.run_once()
    assert stands(wh)["largest"] == ("paused", 2)
    assert read(wh, "big") == Bag.of([("a",), ("b",)])


def _is_dropped_when_states_are_no_longer_retained(
    wh: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    Wall(monkeypatch).move_on(timedelta(weeks=1))
    wh.run_once()
    assert kept(wh) == {"big", "kinds", "other"}, "only largest had a hidden node"


def test_a_view_is_renamed_with_its_rows_and_its_readers_go_on(
    wh: Warehouse, database: SqliteFile
) -> None:
    writer, files = database.writer(), wh.project.root / "views"
    text = f"-- all kinds\nCREATE MATERIALIZED VIEW kinds AS\n{VIEWS['kinds']}\n"
    (files / "kinds.sql").write_text(text)
    with pytest.raises(ConfigError, match='there is a view "Other"|there is a view "other"'):
        wh.rename("kinds", "Other")
    with pytest.raises(ViewRefused, match="cannot have the name"):
        wh.rename("kinds", "of a kind")
    before = wh._catalog.views.get("kinds")
    places = wh.rename("KINDS", "sorts")
    assert [(p.path, p.line, p.column) for p in places] == [("views/big.sql", 1, 29)]
    assert not (files / "kinds.sql").exists()
    assert (files / "sorts.sql").read_text() == text.replace("VIEW kinds", "VIEW sorts")
    assert wh._catalog.views.get("sorts").id == before.id
    writer.execute("INSERT INTO t VALUES (4, 'b', 2)")
    wh.run_once()
    assert set(stands(wh).values()) == {("active", 1)}
    assert read(wh, "sorts") == Bag.of([("a", 2, 30), ("b", 2, 3)])
    assert read(wh, "big") == Bag.of([("a", 30), ("b", 3)]), "it goes on by its old text"
    assert view_of(wh, "big").refusal is not None
    assert all(v.equal for v in wh.verify())
    assert read(wh, "sorts", at=0) == Bag.of([("a", 2, 30), ("b", 1, 1)]), "its past stays"
    row = wh._catalog.views.get("big")
    write_view(wh.project.root, "big", VIEWS["big"].replace("kinds k", "sorts k"))
    writer.execute("INSERT INTO t VALUES (5, 'b', 3)")
    wh.run_once()
    assert wh._catalog.views.get("big").id == row.id, "it means the same"
    assert view_of(wh, "big").refusal is None
    assert all(v.equal for v in wh.verify())
    _is_dropped_with_its_readers(wh)


def _is_dropped_with_its_readers(wh: Warehouse) -> None:
    with pytest.raises(ConfigError, match="read by others") as refused:
        wh.drop("sorts")
    assert refused.value.detail == "it is read by big"
    assert {v.name: v.reads for v in wh.views()} == {
        "big": ["largest", "sorts"],
        "largest": [],
        "other": [],
        "sorts": [],
    }
    assert wh.drop("sorts", cascade=True) == ["big", "sorts"]
    files = wh.project.root / "views"
    assert sorted(path.name for path in files.iterdir()) == ["largest.sql", "other.sql"]
    wh.run_once()
    assert stands(wh).keys() == {"largest", "other"}
    with pytest.raises(ConfigError, match='there is no view "sorts"'):
        wh.drop("sorts")


def test_a_run_takes_up_changed_files_and_commands_of_others(
    wh: Warehouse, database: SqliteFile, spark: SparkSession
) -> None:
    writer, views = database.writer(), wh._catalog.views
    with Running(wh) as run, steadyview.open(wh.project.root, spark=spark) as other:
        run.until(published)
        old = views.get("kinds").id
        write_view(wh.project.root, "kinds", VIEWS["kinds"].replace("SUM(v)", "SUM(v + 1)"))
        writer.execute("INSERT INTO t VALUES (4, 'b', 2)")
        run.until(lambda s: published(s) and s.cn == 1 and views.get("kinds").id != old)
        assert read(other, "kinds") == Bag.of([("a", 2, 32), ("b", 2, 5)])
        assert read(other, "big") == Bag.of([("a", 32), ("b", 5)])
        kinds = views.get("kinds").id
        assert [p.path for p in other.rename("kinds", "sorts")] == ["views/big.sql"]
        assert views.get("sorts").id == kinds
        writer.execute("INSERT INTO t VALUES (5, 'b', 3)")
        run.until(lambda s: published(s) and s.cn == 2)
        assert read(other, "big") == Bag.of([("a", 32), ("b", 9)])
        other.rebuild("largest")
        with pytest.raises(ConfigError, match="read by others"):
            other.drop("largest")
        assert other.drop("largest", cascade=True) == ["big", "largest"]
        run.until(lambda s: {v.name for v in s.views} == {"sorts", "other"})
        write_view(wh.project.root, "other", "SELECT id, v FROM s.t WHERE")
        run.until(lambda s: any(v.refusal for v in s.views))
        writer.execute("INSERT INTO t VALUES (6, 'c', 3)")
        run.until(lambda s: published(s) and s.cn == 3)
    assert all(v.equal for v in wh.verify())
