"""Views with a forced algorithm: what is published is exact, and published exactly once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import steadyview
from steadyview.algebra import Bag, Row
from steadyview.catalog import Published
from steadyview.catalog.views import Views
from steadyview.checking import History, judge
from steadyview.cli.app import app
from steadyview.errors import ConfigError, OutsideRetention, StorageUnavailable, ViewRefused
from steadyview.papers import deliveries, forced
from steadyview.runtime.warehouse import Warehouse
from steadyview.warehouse import view_store
from tests.crash.running import Running, published
from tests.system.databases import (
    LiveDatabase,
    PostgresDatabase,
    SqliteFile,
    write_project,
    write_view,
)
from tests.system.maintained import delta_rows, read

JOIN = "FROM a.r JOIN b.s ON r.x = s.x"
KEYED = f"SELECT r.k AS rk, s.k AS sk, r.v, s.w {JOIN}"
SUMS = f"SELECT s.w, COUNT(*) AS n, SUM(r.v) AS total {JOIN} GROUP BY s.w"


def by(algorithm: str, name: str, select: str) -> str:
    force = f"TBLPROPERTIES ('steadyview.algorithm' = '{algorithm}')"
    return f"CREATE MATERIALIZED VIEW {name} {force} AS {select}"


@pytest.fixture
def sources(tmp_path: Path) -> Iterator[dict[str, LiveDatabase]]:
    made: dict[str, LiveDatabase] = {"a": PostgresDatabase(), "b": SqliteFile(tmp_path / "b.db")}
    made["a"].create("r", "k bigint primary key, x bigint, v bigint")
    made["b"].create("s", "k INTEGER PRIMARY KEY, x INTEGER, w TEXT")
    made["a"].writer().execute("INSERT INTO r VALUES (1, 1, 10), (2, 2, 20)")
    made["b"].writer().execute("INSERT INTO s VALUES (1, 1, 'one'), (2, 1, 'uno')")
    yield made
    for database in made.values():
        database.close()


def changed(sources: dict[str, LiveDatabase]) -> None:
    """Four transactions at a, one at b."""
    a, b = sources["a"].writer(), sources["b"].writer()
    b.execute("INSERT INTO s VALUES (3, 2, 'two')")
    a.execute("INSERT INTO r VALUES (3, 1, 30)")
    with a.transaction():
        a.execute("DELETE FROM r WHERE k = 1")
        a.execute("UPDATE r SET x = 1 WHERE k = 2")
        a.execute("INSERT INTO r VALUES (4, 2, NULL)")
    a.execute("UPDATE r SET v = 5 WHERE k = 3")
    a.execute("DELETE FROM r WHERE k = 4")


VIEWS = {
    "plain": KEYED,
    "sums": SUMS,
    "swept": by("sweep-parallel", "swept", KEYED),
    "strobed": by("strobe", "strobed", KEYED),
    "unit": by("c-t-strobe:2", "unit", KEYED),
    "again": by("recompute", "again", KEYED),
}


def test_views_of_four_algorithms_are_exact_recorded_and_read_only_where_they_have_states(
    sources: dict[str, LiveDatabase],
    tmp_path: Path,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deliveries, "PIECE", 2)
    folder = write_project(tmp_path / "project", sources, VIEWS)
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        changed(sources)
        recordings = [wh.recording(name) for name in VIEWS]
        wh.run_once(recordings=recordings)
        cn = wh.status().cn
        assert [(v.view, v.cn, v.equal) for v in wh.verify()] == [
            (name, cn, True) for name in sorted(VIEWS)
        ]
        for recording in recordings:
            history = wh.recorded(recording)
            assert History.from_json(history.to_json()) == history
            assert judge(history).level in ("strong", "complete")
            assert len(history.transactions) == cn
        assert_states(wh, cn)
        assert wh.explain("strobed").to_dict()["algorithm"] == "strobe"
        assert wh.explain("strobed").to_dict()["level"] == "convergent"
        assert {v.name: v.level for v in wh.status().views}["unit"] == "strong"


def assert_states(wh: Warehouse, cn: int) -> None:
    """A complete view has the change of every cn, another can be read where it was installed."""
    assert changes(wh, "swept") == changes(wh, "plain")
    installed = {row["_cn"] for row in delta_rows(wh, "strobed")}
    between = set(range(1, cn)) - installed
    assert between
    for at in between:
        with pytest.raises(OutsideRetention, match="has no state at cn"):
            wh.view("strobed").read(at=at)
    first = min(installed)
    assert wh.verify(["strobed"], at=first)[0].equal


def changes(wh: Warehouse, view: str) -> Bag[Row]:
    """The rows of a view delta, with their cn."""
    return Bag.of(tuple(row.values()) for row in delta_rows(wh, view))


class Killed(BaseException):
    """Stands for the end of the process."""


# the plain view's batch appends first; its publication is not the forced view's
@pytest.mark.parametrize(
    "crash",
    [
        ("sweep", "delta-written", 2),
        ("sweep", "delta-committed", 2),
        ("sweep", "published", 1),
        ("strobe", "delta-committed", 1),
    ],
    ids=lambda crash: f"{crash[0]}-{crash[1]}",
)
def test_a_crash_at_any_durable_step_of_an_install_changes_nothing(
    crash: tuple[str, str, int],
    sources: dict[str, LiveDatabase],
    tmp_path: Path,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    algorithm, point, before = crash
    views = {"plain": KEYED, "forced": by(algorithm, "forced", KEYED)}
    folder = write_project(tmp_path / "project", sources, views)
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        changed(sources)
        left = iter([False] * before + [True])

        def dies(reached: str) -> None:
            if reached == point and next(left, False):
                raise Killed

        with monkeypatch.context() as patched:
            patched.setattr(forced, "crash_point", dies)
            patched.setattr(view_store, "crash_point", dies)
            with pytest.raises(Killed):
                wh.run_once()
        published = wh._catalog.views.get("forced").cn
        assert published < wh.status().cn
    with steadyview.open(folder, spark=spark) as wh:
        recording = wh.recording("forced")
        wh.run_once(recordings=[recording])
        assert (recording.start > published) == (point == "delta-committed")
        assert judge(wh.recorded(recording)).level == "complete"
        assert algorithm == "strobe" or changes(wh, "forced") == changes(wh, "plain")
        assert [v.equal for v in wh.verify(["forced"])] == [True]


def test_a_recording_goes_on_over_a_publication_that_failed_for_a_moment(
    sources: dict[str, LiveDatabase],
    tmp_path: Path,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = write_project(tmp_path / "project", sources, {"swept": by("sweep", "swept", KEYED)})
    publish, failed = Views.publish, []

    def fails_once(views: Views, published: list[Published]) -> None:
        """After an append: what it appended is durable, and not published."""
        if not failed and published[0].delta_version > (views.get("swept").delta_version or 0):
            failed.append(published[0].cn)
            raise StorageUnavailable("the disk is full")
        publish(views, published)

    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        changed(sources)
        recording = wh.recording("swept")
        monkeypatch.setattr(Views, "publish", fails_once)
        with Running(wh, recordings=[recording]) as running:
            running.until(lambda status: published(status) and status.cn == 5)
        history = wh.recorded(recording)
        assert failed
        assert len(history.transactions) == 5
        assert judge(history).level == "complete"


def test_the_command_line_wins_is_refused_as_a_whole_and_leaves_no_trace_in_complete_views(
    sources: dict[str, LiveDatabase], tmp_path: Path, spark: SparkSession
) -> None:
    folder = write_project(tmp_path / "project", sources, {"v": KEYED, "sums": SUMS})
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        kept = wh._catalog.views.get("v")
        changed(sources)
        with pytest.raises(ViewRefused) as refused:
            wh.run_once(algorithm="strobe")
        assert refused.value.code == "ALGORITHM_AGGREGATES"
        with pytest.raises(ConfigError, match="one view can be recorded"):
            wh.recording()
        (folder / "views" / "sums.sql").unlink()
        wh.run_once(algorithm="sweep-pipelined")
        assert wh._catalog.views.get("v").id == kept.id
        assert [v.equal for v in wh.verify()] == [True]
        write_view(folder, "v", by("conventional", "v", KEYED))
        wh.run_once()
        wrong = wh._catalog.views.get("v")
        assert (wrong.id, wrong.level) == (kept.id, "none")
        write_view(folder, "v", KEYED)
        wh.run_once()
        # what such an algorithm left cannot be trusted
        assert wh._catalog.views.get("v").id != kept.id
        assert read(wh, "v") == read(wh, "v", at=wh.status().cn)


def test_the_command_records_a_run_that_check_history_judges(
    sources: dict[str, LiveDatabase], tmp_path: Path, spark: SparkSession
) -> None:
    folder = write_project(tmp_path / "project", sources, {"file_name": by("sweep", "v", KEYED)})
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
    changed(sources)
    file = tmp_path / "history.json"
    nowhere = ["--record", str(tmp_path / "no folder" / "history.json"), "--project", str(folder)]
    refused = CliRunner().invoke(app, ["run", "--once", *nowhere])
    assert (refused.exit_code, "there is no folder" in refused.output) == (2, True)
    options = ["--algorithm", "t-strobe", "--record", str(file), "--project", str(folder)]
    recorded = CliRunner().invoke(app, ["run", "--once", *options])
    assert recorded.exit_code == 0, recorded.output
    assert judge(History.from_json(file.read_text())).level in ("strong", "complete")
    judged = CliRunner().invoke(app, ["check-history", str(file)])
    assert judged.exit_code == 0, judged.output
