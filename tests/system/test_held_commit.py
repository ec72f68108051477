"""A commit that is captured but not visible yet: PostgreSQL held by a missing synchronous standby.

T1 waits for a standby that never comes; its commit record is in the WAL, and so in the stream. T2
commits locally. A snapshot then shows T2 and not T1, and T1 stays hidden over several batches.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psycopg
import pytest
from pyspark.sql import SparkSession

import steadyview
from examples.embedded_postgres import EmbeddedPostgres, embedded_postgres
from steadyview.algebra import Bag
from steadyview.query import moment
from steadyview.runtime.warehouse import Warehouse
from tests.servers import Database
from tests.system.databases import PostgresDatabase, write_project
from tests.system.maintained import capturing, read

VIEWS = {
    "pairs": "SELECT r.y AS a, s.y AS b FROM pg.r JOIN pg.s ON r.x = s.x",
    "totals": """SELECT r.x, COUNT(*) AS n, SUM(s.y) AS total
                 FROM pg.r JOIN pg.s ON r.x = s.x GROUP BY r.x""",
}


class HeldDatabase:
    """A server whose commits with synchronous_commit = on wait until let go; all others do not."""

    def __init__(self, server: EmbeddedPostgres, folder: Path) -> None:
        url = server.create_database("held")
        self._server = server
        self.database = PostgresDatabase(Database("held", url))
        self.database.create("r", "x bigint, y bigint")
        self.database.create("s", "x bigint, y bigint")
        self.writer = self.database.writer()
        self.writer.execute("INSERT INTO r VALUES (1, 10), (2, 11)")
        self.writer.execute("INSERT INTO s VALUES (1, 20), (2, 20), (2, 20)")
        self.project = write_project(folder / "project", {"pg": self.database}, VIEWS)

    def commit_held(self, statement: str) -> threading.Thread:
        """Commit in a thread of its own, which ends only when the standby is no longer wanted."""
        connection = psycopg.connect(self._server.url("held"))
        connection.execute("SET synchronous_commit = 'on'")
        connection.execute(statement)
        pid = connection.info.backend_pid
        thread = threading.Thread(target=_commit, args=[connection], daemon=True)
        thread.start()
        self._wait_until_held(pid)
        return thread

    def let_go(self, *threads: threading.Thread) -> None:
        """Return when the held commits have ended; a reload that came too early is repeated."""
        for thread in threads:
            for _ in range(120):
                self.writer.execute("ALTER SYSTEM SET synchronous_standby_names = ''")
                self.writer.execute("SELECT pg_reload_conf()")
                thread.join(1)
                if not thread.is_alive():
                    break
            else:
                raise AssertionError("the commit is held although no standby is wanted")

    def _wait_until_held(self, pid: int) -> None:
        pause = threading.Event()
        sql = "SELECT wait_event FROM pg_stat_activity WHERE pid = ?"
        while (waits := self.writer.execute(sql, pid)) != [("SyncRep",)]:
            assert waits, "the commit was not held"
            pause.wait(0.01)

    def rows(self, sql: str) -> Bag[tuple[object, ...]]:
        return Bag.of(self.writer.execute(sql.replace("pg.", "")))


def _commit(connection: psycopg.Connection) -> None:
    connection.commit()
    connection.close()


@pytest.fixture
def held(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeldDatabase]:
    folder = tmp_path_factory.mktemp("held")
    # in force from the start: a reload reaches a commit some time later
    waiting = {"synchronous_standby_names": "nobody", "synchronous_commit": "local"}
    with embedded_postgres(folder / "data", **waiting) as server:
        made = HeldDatabase(server, folder)
        yield made
        made.database.close()


def maintain_while_held(wh: Warehouse, held: HeldDatabase) -> dict[str, list[Bag]]:
    """Three batches with T1 and T3 hidden in them; what the views show at every cn."""
    wh.run_once()
    with capturing(wh) as admit:
        first = held.commit_held("INSERT INTO s VALUES (1, 21), (1, 21)")
        assert admit("pg") == 1
        held.writer.execute("UPDATE r SET y = 12 WHERE x = 1")
        assert admit("pg") == 2
    wh.run_once()
    assert wh._catalog.sources.state("pg").settled == 0, "T1 is hidden still"
    held.writer.execute("INSERT INTO r VALUES (1, 13)")
    third = held.commit_held("DELETE FROM s WHERE x = 2")
    wh.run_once()
    held.writer.execute("UPDATE r SET x = 2 WHERE y = 13")
    wh.run_once()
    held.let_go(first, third)
    return {name: [read(wh, name, at=cn) for cn in range(6)] for name in VIEWS}


def totals(*rows: tuple[int, int, int]) -> Bag:
    return Bag.of(rows)


def test_a_hidden_commit_of_an_earlier_batch_is_compensated(
    held: HeldDatabase, spark: SparkSession
) -> None:
    with steadyview.open(held.project, spark=spark) as wh:
        states = maintain_while_held(wh, held)
        one, two = (1, 1, 20), (2, 2, 40)
        assert states["totals"] == [
            totals(one, two),
            totals((1, 3, 62), two),
            totals((1, 3, 62), two),
            totals((1, 6, 124), two),
            totals((1, 6, 124)),
            totals((1, 3, 62)),
        ]
        for name, sql in VIEWS.items():
            assert states[name][-1] == held.rows(sql)
        assert all(v.equal for v in wh.verify(at=4))
        held.writer.execute("INSERT INTO s VALUES (1, 1)")
        wh.run_once()
        assert wh._catalog.sources.state("pg").settled == 6, "nothing is hidden any more"
        assert all(v.equal for v in wh.verify())


def test_the_views_are_wrong_if_a_captured_commit_is_taken_for_visible(
    held: HeldDatabase, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def everything(snapshot: object, ids: np.ndarray) -> np.ndarray:
        return np.ones(len(ids), dtype=bool)

    monkeypatch.setattr(moment, "_shown", everything)
    with steadyview.open(held.project, spark=spark) as wh:
        wh.run_once()
        thread = held.commit_held("INSERT INTO s VALUES (1, 21), (1, 21)")
        wh.run_once()
        held.writer.execute("INSERT INTO r VALUES (1, 13)")
        wh.run_once()
        held.let_go(thread)
        assert read(wh, "pairs") != held.rows(VIEWS["pairs"])
