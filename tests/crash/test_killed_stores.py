"""Whoever keeps a store is killed anywhere, or the store is: every record is right at W, and then.

What a store shows is read by its readers, and compared with the view at that cn, which is read from
the warehouse's files.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.sql import SparkSession

import steadyview
from steadyview.crash_points import SERVING, VARIABLE
from steadyview.errors import ConfigError, StoreUnavailable
from steadyview.runtime.file_reading import ReadableView
from steadyview.runtime.store_keeping import StoreKeepers
from steadyview.runtime.warehouse import Warehouse
from tests.conftest import SOAK
from tests.crash.server import Server
from tests.serving.redis_server import RedisServer
from tests.serving.stores import FAMILIES, Place, place
from tests.system.databases import SqliteFile, write_project

GROUPS = range(6)
SELECT = "SELECT g, COUNT(*) AS n, SUM(x) AS x FROM s.t GROUP BY g"
SERVED = "TBLPROPERTIES ('steadyview.serve' = 'cache')"
VIEWS = {name: f"CREATE MATERIALIZED VIEW {name} {SERVED} AS {SELECT}" for name in ("one", "two")}
KILLS = 170 if SOAK else 5


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteFile]:
    made = SqliteFile(tmp_path / "s.db")
    made.create("t", "g INTEGER, x INTEGER")
    made.writer().execute("INSERT INTO t VALUES (1, 10), (1, 10), (2, NULL), (NULL, 3)")
    yield made
    made.close()


@pytest.fixture
def keeper(database: SqliteFile, tmp_path: Path, spark: SparkSession) -> Iterator[Warehouse]:
    """Keeps the views, and no store: its project file has none."""
    folder = write_project(tmp_path / "keeper", {"s": database}, VIEWS)
    with steadyview.open(folder, spark=spark) as opened:
        opened.run_once()
        yield opened


@contextmanager
def serving(keeper: Warehouse, where: Place) -> Iterator[Warehouse]:
    """The same warehouse, of a project that has the store."""
    folder = keeper.project.root.with_name("serving")
    if not folder.exists():
        shutil.copytree(keeper.project.root, folder, ignore=shutil.ignore_patterns("warehouse"))
        text = (folder / "steadyview.toml").read_text()
        told = f'[project]\nwarehouse = {json.dumps(str(keeper.project.warehouse))}\n'
        lines = [f"{k} = {json.dumps(v)}" for k, v in where.settings.items()]
        text = text.replace("[project]\n", told) + "\n".join(["[stores.cache]", *lines, ""])
        (folder / "steadyview.toml").write_text(text)
    with steadyview.open(folder) as opened:
        yield opened


def changed(database: SqliteFile, dice: random.Random) -> None:
    g, x = dice.choice((*GROUPS[1:], "NULL")), dice.choice((1, 10, "NULL"))
    database.writer().execute(
        dice.choice(
            (
                f"INSERT INTO t VALUES ({g}, {x}), ({dice.randrange(6)}, {x})",
                f"UPDATE t SET x = {x} WHERE g IS {g}",
                f"UPDATE t SET g = {g} WHERE rowid % 3 = 0",
                f"DELETE FROM t WHERE g IS {g}",
            )
        )
    )


def check(wh: Warehouse) -> dict[str, int]:
    """All records of each view are those of the view at the store's cn; these cns."""
    stands = {}
    for view in VIEWS:
        keys = [*GROUPS, None]
        try:
            found = wh.store("cache").get_many(view, keys)
        except ConfigError:
            # nothing is served yet
            continue
        rows = [
            row
            for part in ReadableView(wh.project.root, view).parts(at=found.cn)
            for piece in part.rows()
            for row in piece.to_pylist()
        ]
        shown = [dict(record.values) for record in found.records if record is not None]
        assert sorted(map(repr, shown)) == sorted(map(repr, rows)), (view, found.cn)
        stands[view] = found.cn
    return stands


def check_newest(wh: Warehouse) -> None:
    assert check(wh) == {view: wh._catalog.views.get(view).cn for view in VIEWS}
    assert {status.state for status in wh.served()} == {"serving"}


@pytest.mark.parametrize("family", FAMILIES)
def test_killed_before_or_after_any_operation_the_records_are_right(
    database: SqliteFile, keeper: Warehouse, tmp_path: Path, family: str
) -> None:
    dice = random.Random(len(family))
    with place(family, tmp_path) as where, serving(keeper, where) as wh:
        for life in range(KILLS):
            for _ in range(dice.randrange(1, 8)):
                changed(database, dice)
            keeper.run_once()
            if dice.random() < 0.1:
                with where.open() as store:
                    store.want(dice.choice([*VIEWS]))
            number = dice.randrange(1, 12)
            when = dice.choice(("before", "after"))
            command = [sys.executable, "-m", "tests.crash.store_driver", str(wh.project.root)]
            ended = subprocess.run([*command, str(number), when], check=False)
            assert ended.returncode in (0, -signal.SIGKILL)
            check(wh)
            if life % 3 == 2:
                assert StoreKeepers(wh._parts).now() == []
                check_newest(wh)
        assert StoreKeepers(wh._parts).now() == []
        check_newest(wh)


def test_killed_at_any_named_point_the_records_are_right(
    database: SqliteFile, keeper: Warehouse, tmp_path: Path
) -> None:
    dice = random.Random(2)
    with place("sqlite", tmp_path) as where, serving(keeper, where) as wh:
        assert StoreKeepers(wh._parts).now() == []
        command = [sys.executable, "-m", "tests.crash.store_driver", str(wh.project.root), "0", "-"]
        for point in SERVING:
            for _ in range(4):
                changed(database, dice)
            keeper.run_once()
            if point in ("records-begun", "records-switched"):
                with where.open() as store:
                    store.want("one")
            environment = {**os.environ, VARIABLE: point}
            ended = subprocess.run(command, env=environment, check=False)
            assert ended.returncode == -signal.SIGKILL, point
            check(wh)
        assert StoreKeepers(wh._parts).now() == []
        check_newest(wh)


@pytest.mark.parametrize("family", ["postgresql", "redis"])
def test_a_store_whose_server_is_killed_is_brought_up_again(
    database: SqliteFile, keeper: Warehouse, tmp_path: Path, family: str
) -> None:
    dice = random.Random(3)
    # not below pytest's own folder, which the server's user may not enter
    folder = Path(tempfile.mkdtemp(prefix="steadyview-store-"))
    server: Any = Server(folder / "data") if family == "postgresql" else _redis(folder)
    try:
        with serving(keeper, Place(family, {"type": family, "url": server.url})) as wh:
            for _ in range(2):
                changed(database, dice)
                keeper.run_once()
                keepers = StoreKeepers(wh._parts)
                assert keepers.now() == []
                check_newest(wh)
                changed(database, dice)
                keeper.run_once()
                _kill(server)
                (trouble,) = keepers.now()
                assert trouble.view is None
                assert isinstance(trouble.error, StoreUnavailable)
                assert "s3cret" not in str(trouble.error)
                assert {status.state for status in wh.served()} == {"away"}
                server.start()
                wh.store("cache").close()
                check(wh)
                assert keepers.now() == []
                check_newest(wh)
                keepers.stop()
    finally:
        server.delete()
        shutil.rmtree(folder, ignore_errors=True)


class _OwnRedis(RedisServer):
    def delete(self) -> None:
        self.kill()


def _redis(folder: Path) -> RedisServer:
    pytest.importorskip("redis", reason="pip install 'steadyview[redis]'")
    return _OwnRedis(folder).start()


def _kill(server: Any) -> None:
    """As a power cut: nothing is cleaned up."""
    if isinstance(server, RedisServer):
        server.kill()
        return
    folder: Path = server._server.folder
    process = psutil.Process(int((folder / "postmaster.pid").read_text().split()[0]))
    family = [process, *process.children(recursive=True)]
    process.kill()
    psutil.wait_procs(family, 30)
