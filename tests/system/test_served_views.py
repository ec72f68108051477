"""Served views: what readers of a store see is the view at one cn, whatever happened to it."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import steadyview
from steadyview.cli.app import app
from steadyview.errors import ConfigError, SteadyviewError, StoreRefused, ViewRefused
from steadyview.runtime import housekeeping, record_batches
from steadyview.runtime.file_reading import ReadableView
from steadyview.runtime.housekeeping import Housekeeping
from steadyview.runtime.store_keeping import StoreKeepers
from steadyview.runtime.store_reading import ServedRecords
from steadyview.runtime.warehouse import Warehouse
from tests.crash.running import Running
from tests.serving.stores import FAMILIES, Place, place
from tests.system.databases import SqliteFile, write_project, write_view


def served(name: str, select: str, key: str | None = None, more: str = "") -> str:
    keyed = f", 'steadyview.serve.key' = '{key}'" if key else ""
    properties = f"'steadyview.serve' = 'cache'{keyed}{more}"
    return f"CREATE MATERIALIZED VIEW {name} TBLPROPERTIES ({properties}) AS {select}"


SUMS = "SELECT t.g, COUNT(*) AS n, SUM(u.x) AS x FROM s.t JOIN s.u ON u.t = t.id GROUP BY t.g"
VIEWS = {
    "sums": served("sums", SUMS),
    "plain": served("plain", "SELECT id, g FROM s.t", "ID"),
    "whole": served("whole", "SELECT id, g FROM s.t", "id", ", 'steadyview.policy' = 'snapshot'"),
    "rough": served("rough", SUMS, None, ", 'steadyview.level' = 'strong'"),
    "apart": "SELECT id FROM s.t",
}
KEYS: dict[str, list[Any]] = {
    "sums": ["a", "b", "ü 'c'", None],
    "plain": [*range(8)],
    "whole": [*range(8)],
    "rough": ["a", "b", "ü 'c'", None],
}


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteFile]:
    made = SqliteFile(tmp_path / "s.db")
    made.create("t", "id INTEGER PRIMARY KEY, g TEXT")
    made.create("u", "t INTEGER, x INTEGER")
    made.writer().execute("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, NULL)")
    made.writer().execute("INSERT INTO u VALUES (1, 10), (2, 20), (2, NULL), (3, 20)")
    yield made
    made.close()


@pytest.fixture(params=FAMILIES)
def cache(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    with place(request.param, tmp_path) as found:
        yield found


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Place]:
    with place("sqlite", tmp_path) as found:
        yield found


def project(folder: Path, database: SqliteFile, cache: Place, views: dict[str, str]) -> Path:
    made = write_project(folder, {"s": database}, views)
    with (made / "steadyview.toml").open("a") as toml:
        toml.write("[stores.cache]\n")
        toml.writelines(f"{k} = {json.dumps(v)}\n" for k, v in cache.settings.items())
    return made


def change(database: SqliteFile, dice: random.Random) -> None:
    g, i, x = dice.choice(("'a'", "'b'", "'ü ''c'''", "NULL")), dice.randrange(8), dice.randrange(3)
    database.writer().execute(
        dice.choice(
            (
                f"INSERT INTO t VALUES ({i}, {g}) ON CONFLICT DO UPDATE SET g = {g}",
                f"DELETE FROM t WHERE id = {i}",
                f"INSERT INTO u VALUES ({i}, {x}), ({i}, NULL)",
                f"DELETE FROM u WHERE t = {i}",
                f"UPDATE t SET g = {g} WHERE id > {i}",
            )
        )
    )


def many(wh: Warehouse, view: str) -> tuple[int, dict[Any, dict[str, Any]]]:
    found: ServedRecords = wh.store("cache").get_many(view, KEYS[view])
    named = zip(KEYS[view], found.records, strict=True)
    return found.cn, {key: dict(r.values) for key, r in named if r is not None}


def expected(wh: Warehouse, view: str, cn: int) -> dict[Any, dict[str, Any]]:
    parts = ReadableView(wh.project.root, view).parts(at=cn)
    rows = [row for part in parts for piece in part.rows() for row in piece.to_pylist()]
    key = "id" if view in ("plain", "whole") else "g"
    found = {row[key]: row for row in rows}
    assert len(found) == len(rows)
    return found


def check(wh: Warehouse, views: Any = tuple(KEYS)) -> None:
    """Each is the view at the store's cn, which is the newest; by single gets as well."""
    for view in views:
        cn, found = many(wh, view)
        assert cn == wh._catalog.views.get(view).cn, view
        assert found == expected(wh, view, cn), view
        for key in KEYS[view]:
            one = wh.store("cache").get(view, key)
            assert (None if one is None else one.values) == found.get(key), (view, key)


def stands(wh: Warehouse) -> dict[str, Any]:
    return {one.view: one for one in wh.served()}


def test_records_are_the_view_after_any_changes_by_arrow_and_by_spark(
    database: SqliteFile,
    cache: Place,
    tmp_path: Path,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dice = random.Random(len(cache.family))
    folder = project(tmp_path / "project", database, cache, VIEWS)
    with steadyview.open(folder, spark=spark) as wh:
        for small in (5_000, 0, 2, 5_000):
            # what is larger is a Spark job
            monkeypatch.setattr(record_batches, "SMALL", small)
            for _ in range(dice.randrange(1, 6)):
                change(database, dice)
            wh.run_once()
            if dice.random() < 0.5:
                wh.refresh(["whole"])
            check(wh)
        verdicts = wh.verify_served()
        assert [v.view for v in verdicts if v.equal] == sorted(KEYS)
        assert {s.state for s in wh.served()} == {"serving"}
        if cache.family != "redis":
            rows = map(str, cache.sql('SELECT g, n, x FROM "sums"'))
            seen = (str(tuple(row)) for row in wh.view("sums").read().collect())
            assert sorted(rows) == sorted(seen)


def test_a_record_that_is_not_as_in_the_view_is_found_by_verify(
    database: SqliteFile, file: Place, tmp_path: Path, spark: SparkSession
) -> None:
    folder = project(tmp_path / "project", database, file, {"sums": VIEWS["sums"]})
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        file.sql("UPDATE sums__1 SET n = n + 1 WHERE g = 'a'")
        (verdict,) = wh.verify_served()
        assert (verdict.equal, verdict.missing, verdict.extra) == (False, 1, 1)
        wh.rebuild_served("sums")
        (verdict,) = wh.verify_served()
        assert verdict.equal
        assert stands(wh)["sums"].rebuilt == "somebody asked for it"


def test_a_key_with_several_rows_stops_its_view_alone_until_it_is_cured(
    database: SqliteFile, file: Place, tmp_path: Path, spark: SparkSession
) -> None:
    views = {"by_g": served("by_g", "SELECT id, g FROM s.t", "g"), "sums": VIEWS["sums"]}
    folder = project(tmp_path / "project", database, file, views)
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        before = wh.store("cache").get_many("by_g", ["a", "b"])
        database.writer().execute("INSERT INTO t VALUES (7, 'a')")
        with pytest.raises(SteadyviewError, match="several rows of one key"):
            wh.run_once()
        check(wh, ["sums"])
        assert stands(wh)["by_g"].state == "stopped"
        assert "several rows of one key" in (stands(wh)["by_g"].error or "")
        assert wh.store("cache").get_many("by_g", ["a"]).cn == before.cn
        wh.run_once()
        write_view(folder, "by_g", served("by_g", "SELECT id, g FROM s.t", "g, id"))
        wh.run_once()
        assert stands(wh)["by_g"].state == "serving"
        record = wh.store("cache").get("by_g", "a", 7)
        assert record is not None
        assert record.values == {"id": 7, "g": "a"}


def test_a_store_of_yesterday_is_brought_up_and_an_empty_one_is_filled(
    database: SqliteFile, file: Place, tmp_path: Path, spark: SparkSession
) -> None:
    dice = random.Random(5)
    folder = project(tmp_path / "project", database, file, {"sums": VIEWS["sums"]})
    path = Path(file.settings["path"])
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        copy = tmp_path / "backup.db"
        with sqlite3.connect(path) as now, sqlite3.connect(copy) as backup:
            now.backup(backup)
        for _ in range(6):
            change(database, dice)
        database.writer().execute("DELETE FROM t WHERE id = 1")
        wh.run_once()
    _replaced(path, copy)
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        check(wh, ["sums"])
        assert stands(wh)["sums"].rebuilt == "there were none"
    _replaced(path, None)
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        check(wh, ["sums"])
    _replaced(path, copy)
    with steadyview.open(folder, spark=spark) as wh:
        _forget_the_past(wh, database)
        wh.run_once()
        check(wh, ["sums"])
        assert "not kept any more" in (stands(wh)["sums"].rebuilt or "")


def _replaced(path: Path, copy: Path | None) -> None:
    for beside in path.parent.glob(f"{path.name}*"):
        beside.unlink()
    if copy is not None:
        shutil.copy(copy, path)


def _forget_the_past(wh: Warehouse, database: SqliteFile) -> None:
    from copy import copy
    from dataclasses import replace

    usual, housekeeping.READERS = housekeeping.READERS, timedelta(0)
    parts = copy(wh._parts)
    parts.project = replace(parts.project, retention=timedelta(0))
    try:
        with wh._lease("tidy"):
            Housekeeping(parts).now()
    finally:
        housekeeping.READERS = usual
    row = wh._catalog.views.get("sums")
    assert row.oldest_cn == row.cn


def test_a_changed_view_is_written_anew_and_a_dropped_one_is_taken_out(
    database: SqliteFile, file: Place, tmp_path: Path, spark: SparkSession
) -> None:
    views = {"sums": VIEWS["sums"], "plain": VIEWS["plain"]}
    folder = project(tmp_path / "project", database, file, views)
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        write_view(folder, "sums", served("sums", SUMS.replace("SUM(u.x)", "SUM(u.x + 1)")))
        wh.run_once()
        check(wh, ["sums", "plain"])
        wh.drop("plain")
        wh.run_once()
        with pytest.raises(ConfigError, match='serves no view "plain"'):
            wh.store("cache").get("plain", 1)
        write_view(folder, "sums", SUMS)
        wh.run_once()
        assert wh.served() == []
        with file.open() as store:
            assert store.views() == []


def test_what_is_not_ours_in_a_store_is_not_touched(
    database: SqliteFile, file: Place, tmp_path: Path, spark: SparkSession
) -> None:
    file.sql('CREATE TABLE "Sums" (mine TEXT)')
    views = {"sums": VIEWS["sums"], "plain": VIEWS["plain"]}
    folder = project(tmp_path / "project", database, file, views)
    with steadyview.open(folder, spark=spark) as wh:
        with pytest.raises(StoreRefused, match='something else called "sums"'):
            wh.run_once()
        check(wh, ["plain"])
        assert stands(wh)["sums"].state == "not built yet"
    assert file.sql('SELECT * FROM "Sums"') == []


def test_two_warehouses_do_not_serve_one_view_from_one_store(
    database: SqliteFile, file: Place, tmp_path: Path, spark: SparkSession
) -> None:
    views = {"plain": VIEWS["plain"]}
    with steadyview.open(project(tmp_path / "one", database, file, views), spark=spark) as wh:
        wh.run_once()
        other = SqliteFile(tmp_path / "other.db")
        other.create("t", "id INTEGER PRIMARY KEY, g TEXT")
        with (
            steadyview.open(project(tmp_path / "two", other, file, views), spark=spark) as second,
            pytest.raises(StoreRefused, match="another warehouse"),
        ):
            second.run_once()
        other.close()
        database.writer().execute("INSERT INTO t VALUES (5, 'z')")
        wh.run_once()
        check(wh, ["plain"])


def test_a_copy_of_a_warehouse_does_not_write_over_the_others_records(
    database: SqliteFile, file: Place, tmp_path: Path, spark: SparkSession
) -> None:
    folder = project(tmp_path / "one", database, file, {"plain": VIEWS["plain"]})
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
    shutil.copytree(folder, tmp_path / "two")
    with steadyview.open(folder, spark=spark) as wh:
        database.writer().execute("INSERT INTO t VALUES (5, 'z')")
        wh.run_once()
        check(wh, ["plain"])
    with steadyview.open(tmp_path / "two", spark=spark) as wh:
        (trouble,) = StoreKeepers(wh._parts).now()
        assert "another past" in str(trouble.error)
        assert stands(wh)["plain"].state == "stopped"
        wh.rebuild_served("plain")
        check(wh, ["plain"])


def test_a_store_that_is_away_holds_nobody_up_and_is_filled_when_it_is_back(
    database: SqliteFile, file: Place, tmp_path: Path, spark: SparkSession
) -> None:
    folder = project(tmp_path / "project", database, file, {"sums": VIEWS["sums"]})
    path = Path(file.settings["path"])
    with steadyview.open(folder, spark=spark) as wh, Running(wh) as running:
        running.until(lambda s: bool(s.views) and _at_newest(wh, s.cn))
        away = tmp_path / "away"
        away.mkdir()
        for part in tmp_path.glob(f"{path.name}*"):
            part.rename(away / part.name)
        path.mkdir()
        database.writer().execute("INSERT INTO u VALUES (1, 7)")
        cn = running.until(lambda s: s.cn > 0 and s.views[0].cn == s.cn).cn
        running.until(lambda s: stands(wh)["sums"].state == "away")
        path.rmdir()
        for part in away.iterdir():
            part.rename(tmp_path / part.name)
        running.until(lambda s: _at_newest(wh, cn))
    with steadyview.open(folder, spark=spark) as wh:
        check(wh, ["sums"])


def _at_newest(wh: Warehouse, cn: int) -> bool:
    found = stands(wh).get("sums")
    return found is not None and found.cn is not None and found.cn >= cn


def test_a_view_without_a_key_is_refused(
    database: SqliteFile, file: Place, tmp_path: Path, spark: SparkSession
) -> None:
    views = {
        "no_key": served("no_key", "SELECT id, g FROM s.t"),
        "hidden": served("hidden", "SELECT COUNT(*) AS n FROM s.t GROUP BY g"),
        "misspelt": served("misspelt", "SELECT id FROM s.t", "ids"),
        "inexact": served("inexact", "SELECT CAST(id AS DOUBLE) AS d FROM s.t", "d"),
        "taken": served("taken", "SELECT id, g AS _was_g FROM s.t", "id"),
        "snap": served("snap", "SELECT id FROM s.t", None, ", 'steadyview.policy' = 'snapshot'"),
        "good": served("good", "SELECT g AS h, COUNT(*) AS n FROM s.t GROUP BY 1"),
        "least": served("least", "SELECT MIN(id) AS m, g AS `the g` FROM s.t GROUP BY g"),
    }
    folder = project(tmp_path / "project", database, file, views)
    with steadyview.open(folder, spark=spark) as wh:
        found = {c.name: c for c in wh.check() if c.name in views}
        good, least = found.pop("good"), found.pop("least")
        assert least.verdict == "incremental"
        assert wh._plan("least").serve_key == ("the g",)
        assert (good.verdict, {c.code for c in found.values()}) == ("incremental", {"SERVE_KEY"})
        assert {c.line for c in found.values()} == {1}  # type: ignore[union-attr]
        assert wh._plan("good").serve_key == ("h",)
        with pytest.raises(ViewRefused, match='no column "ids"'):
            wh.explain("misspelt")
        assert 'served from its change table in cache, key (h)' in wh.explain("good").text


def test_commands_read_and_check_a_store(
    database: SqliteFile, file: Place, tmp_path: Path, spark: SparkSession
) -> None:
    folder = project(tmp_path / "project", database, file, {"sums": VIEWS["sums"]})
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()

    def run(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(app, [*words, "--project", str(folder)])
        return done.exit_code, done.stdout

    code, told = run("get", "SUMS", "b", "--json")
    record = json.loads(told)
    assert (code, record["values"]) == (0, {"g": "b", "n": 2, "x": 20})
    assert record["cn"] <= record["as_of"]
    assert run("get", "sums", "NULL")[0] == 0
    assert run("get", "sums", "nobody")[0] == 1
    assert run("get", "sums", "a", "b")[0] == 2
    code, told = run("serve", "status", "--json")
    (one,) = json.loads(told)
    assert (code, one["view"], one["state"], one["records"]) == (0, "sums", "serving", 3)


def test_reading_a_record_needs_no_spark(
    database: SqliteFile, file: Place, tmp_path: Path, spark: SparkSession
) -> None:
    folder = project(tmp_path / "project", database, file, {"sums": VIEWS["sums"]})
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
    program = (
        "import sys, steadyview\n"
        f"wh = steadyview.open({str(folder)!r})\n"
        "record = wh.store('cache').get('sums', 'a')\n"
        "assert record.values['n'] == 1, record\n"
        "assert 'pyspark' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
