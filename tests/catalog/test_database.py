"""The catalog's file: threads, other processes, damage, no secrets."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from steadyview.catalog import Base, Catalog, Gap, ViewSpec
from steadyview.changes import Flush
from steadyview.errors import StorageDamaged, StorageUnavailable
from tests.catalog.clocks import SetClock
from tests.catalog.old_formats import as_format_8

READ = """
import sys
from pathlib import Path
from steadyview.catalog import Catalog
catalog = Catalog.open(Path(sys.argv[1]), None)
for line in sys.stdin:
    state = catalog.sources.state("sales")
    print(catalog.commits.last_cn(), state.last_seq, state.position, flush=True)
"""


def test_threads_admit_without_losing_or_doubling_a_commit(catalog: Catalog) -> None:
    def work(source: str) -> None:
        for seq in range(1, 41):
            catalog.commits.admit(Flush(source, seq, seq, seq, str(seq)))

    threads = [threading.Thread(target=work, args=(name,)) for name in ("sales", "crm")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = [catalog.commits.transaction_of(cn) for cn in range(1, 81)]
    assert sorted(found) == sorted((s, seq) for s in ("sales", "crm") for seq in range(1, 41))
    assert [seq for source, seq in found if source == "crm"] == list(range(1, 41))


def test_another_process_reads_committed_states_while_one_writes(catalog: Catalog) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", READ, str(catalog.path.parent)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        for seq in (1, 2, 3):
            catalog.commits.admit(Flush("sales", seq, seq, seq, f"p{seq}"))
            with catalog._database.write() as connection:
                connection.execute("UPDATE sources SET last_seq = 99")
                process.stdin.write("\n")
                process.stdin.flush()
                assert process.stdout.readline() == f"{seq} {seq} p{seq}\n"
                connection.execute("UPDATE sources SET last_seq = ?", (seq,))
        process.stdin.close()


def test_a_failed_transaction_leaves_nothing(catalog: Catalog) -> None:
    def fail() -> None:
        with catalog._database.write() as connection:
            connection.execute("UPDATE warehouse SET last_cn = 99")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert catalog.commits.last_cn() == 0


def test_committed_means_durable(catalog: Catalog) -> None:
    assert catalog._database.read("PRAGMA synchronous") == [(2,)]
    assert catalog._database.read("PRAGMA journal_mode") == [("wal",)]
    assert catalog._database.read("PRAGMA foreign_keys") == [(1,)]


def test_every_table_is_strict(catalog: Catalog) -> None:
    tables = catalog._database.read(
        "SELECT name, strict FROM pragma_table_list"
        " WHERE schema = 'main' AND name NOT LIKE 'sqlite%'"
    )
    assert len(tables) >= 8
    assert all(strict for _, strict in tables)


def test_a_file_that_is_no_database_is_damage(tmp_path: Path) -> None:
    (tmp_path / "catalog.db").write_bytes(b"no database at all" * 100)
    for opening in (Catalog.open, Catalog.create):
        with pytest.raises(StorageDamaged, match="is damaged") as raised:
            opening(tmp_path, SetClock())
        assert raised.value.hint


def test_an_overwritten_page_is_damage_with_something_to_do(tmp_path: Path) -> None:
    with Catalog.create(tmp_path, SetClock()) as catalog:
        for i in range(200):
            catalog.sources.register(f"source {i}", "sqlite")
    path = tmp_path / "catalog.db"
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
    with pytest.raises(StorageDamaged) as raised:
        Catalog.open(tmp_path, SetClock()).sources.states()
    assert "restore" in (raised.value.hint or "")


def test_a_foreign_database_is_damage(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "catalog.db")
    connection.execute("CREATE TABLE anything (x)")
    connection.commit()
    connection.close()
    with pytest.raises(StorageDamaged):
        Catalog.create(tmp_path, SetClock())


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    with Catalog.create(tmp_path, SetClock()) as made, made._database.write() as connection:
        connection.execute("UPDATE warehouse SET format = 99")
    with pytest.raises(StorageDamaged, match="another format"):
        Catalog.open(tmp_path, SetClock())


def test_no_warehouse_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(StorageDamaged, match="there is no warehouse"):
        Catalog.open(tmp_path / "none", SetClock())
    assert not (tmp_path / "none").exists()


def test_a_full_disk_is_said_so_and_work_goes_on_afterwards(catalog: Catalog) -> None:
    ((pages,),) = catalog._database.read("PRAGMA page_count")
    catalog._database.read(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StorageUnavailable, match="disk full"):
        _admit(catalog, 1000)
    last = catalog.commits.last_cn()
    catalog._database.read("PRAGMA max_page_count = 1000000")
    catalog.commits.admit(Flush("sales", last + 1, last + 1, last + 1, "p"))
    assert catalog.commits.last_cn() == last + 1


def _admit(catalog: Catalog, count: int) -> None:
    for seq in range(1, count):
        catalog.commits.admit(Flush("sales", seq, seq, seq, "p" * 1000))


def test_a_closed_catalog_can_be_closed_again(catalog: Catalog) -> None:
    catalog.close()
    catalog.close()


def test_a_catalog_of_format_1_is_brought_up_to_date(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "catalog.db")) as old:
        old.executescript(Path(__file__).with_name("format_1.sql").read_text())
        old.execute("INSERT INTO warehouse VALUES (1, 1, 50, 3, 60, 0)")
        old.execute("INSERT INTO sources VALUES ('sales', 'postgresql', '0/1', 3, 1, 0, 60)")
        old.execute("INSERT INTO runs VALUES (1, 'sales', 1, 3, 58)")
        old.execute(
            "INSERT INTO views VALUES (1, 'v', 'SELECT 1', 'complete', 'incremental', '', 'f',"
            " 'active', NULL, NULL, NULL, 0, 0, 3, 1, 0, 0)"
        )
        old.commit()
    for _ in range(2):
        with Catalog.create(tmp_path, SetClock(100)) as catalog:
            assert len(catalog.identity()) == 8
            assert catalog.sources.state("sales").proof == '{"format": 1}'
            assert catalog.commits.time_of(3) == 60
            assert catalog.views.find("v") is None, "views are built anew"
            assert [row.name for row in catalog.views.dropped()] == ["v"]
            catalog.sources.contact("sales", 70, heard=True, error=None)
            identity = catalog.identity()
    with Catalog.create(tmp_path, SetClock(100)) as catalog:
        assert catalog.identity() == identity


def test_a_catalog_of_format_5_goes_on_with_its_views(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "catalog.db")) as old:
        old.executescript(Path(__file__).with_name("format_5.sql").read_text())
    with Catalog.create(tmp_path, SetClock(100)) as catalog:
        row = catalog.views.get("v")
        assert (row.id, row.state, row.cn, row.made_as, row.paused) == (3, "active", 7, "v", None)
        assert catalog.views.bases(3) == [Base(5, 2)]
        assert [r.id for r in catalog.views.replacements()] == [4]
        assert catalog.files.all() == []
        added = catalog.views.add(ViewSpec("w", "", "complete", "incremental", "", ""), 7)
        assert added.id == 10, "9 was the last id that was ever given"
        catalog.views.pause("v")
    with Catalog.create(tmp_path, SetClock(100)) as catalog:
        assert catalog.views.get("v").state == "paused"


def test_a_catalog_of_format_6_builds_views_with_min_and_what_reads_them_anew(
    tmp_path: Path,
) -> None:
    gather = '{"plan": {"block": {"is": "Gather"}}, "inputs": {"~fold": 1}}'
    definitions = {"fold": '{"inputs": {}}', "least": gather, "refused": ""}
    with Catalog.create(tmp_path, SetClock(100)) as catalog:
        for name, definition in definitions.items():
            catalog.views.add(ViewSpec(name, "", "complete", "incremental", definition, ""), 0)
        for name, read in (("reader", "least"), ("over", "reader"), ("other", "fold")):
            inputs = f'{{"inputs": {{"{read}": {catalog.views.get(read).id}}}}}'
            catalog.views.add(ViewSpec(name, "", "complete", "incremental", inputs, ""), 0)
    with closing(sqlite3.connect(tmp_path / "catalog.db")) as old, old:
        as_format_8(old)
        old.execute("DROP TABLE gaps")
        old.execute("DROP TABLE refreshes")
        old.execute("DROP TABLE subscriptions")
        old.execute("UPDATE warehouse SET format = 6")
    with Catalog.create(tmp_path, SetClock(100)) as catalog:
        assert {row.name for row in catalog.views.all()} == {"fold", "refused", "other"}


def test_a_catalog_of_format_7_has_views_without_gaps(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "catalog.db")) as old:
        old.executescript(Path(__file__).with_name("format_7.sql").read_text())
    for _ in range(2):
        with Catalog.create(tmp_path, SetClock(100)) as catalog:
            row = catalog.views.get("v")
            assert (row.id, row.state, row.level, row.cn) == (3, "active", "strong", 7)
            assert catalog.views.bases(3) == [Base(5, 2)]
            assert catalog.gaps.of([3]) == []
    with Catalog.create(tmp_path, SetClock(100)) as catalog:
        catalog.gaps.begin({3: 7}, [Gap(3, 7, 9)])
        assert catalog.gaps.around(3, 8) == Gap(3, 7, 9)


def test_a_catalog_of_format_8_has_no_gates_and_gets_them(tmp_path: Path) -> None:
    with Catalog.create(tmp_path, SetClock(100)) as catalog:
        catalog.sources.register("sales", "sqlite")
        catalog.commits.admit(Flush("sales", 1, 1, 3, "p"))
    with closing(sqlite3.connect(tmp_path / "catalog.db")) as old, old:
        as_format_8(old)
    for _ in range(2):
        with Catalog.create(tmp_path, SetClock(100)) as catalog:
            assert catalog.commits.cn_at(102) == 2
            assert catalog.sources.state("sales").dated == 0
    with Catalog.create(tmp_path, SetClock(200)) as catalog, catalog.held():
        assert [gate.time for gate in catalog.gates.keep({150: {"sales"}})] == [150]
        assert catalog.gates.bind(150, {}, 160) == 3
        assert catalog.commits.cn_at(150) == 3


def test_a_catalog_of_format_8_has_gaps_of_which_none_is_compressed(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "catalog.db")) as old:
        old.executescript(Path(__file__).with_name("format_8.sql").read_text())
    for _ in range(2):
        with Catalog.create(tmp_path, SetClock(100)) as catalog:
            assert catalog.gaps.of([3]) == [Gap(3, 2, 5), Gap(3, 5, 7)]
            assert catalog.holds.all() == []
            (reader,) = catalog.subscriptions.all()
            assert (reader.name, reader.position, reader.offered) == ("r", 5, 6)
            assert catalog.refreshes.all()[3].propagated == 7
    with Catalog.create(tmp_path, SetClock(100)) as catalog:
        assert catalog.gaps.compress([Gap(3, 2, 7, 2)]) == [], "the reader is at 5"
        catalog.subscriptions.drop("r")
        catalog.gaps.compress([Gap(3, 2, 7, 2)])
        assert catalog.gaps.of([3]) == [Gap(3, 2, 7, 2, pending=1)]


def test_a_catalog_of_format_8_has_recomputed_views_at_their_newest_state(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "catalog.db")) as old:
        old.executescript(Path(__file__).with_name("format_8.sql").read_text())
    for _ in range(2):
        with Catalog.create(tmp_path, SetClock(100)) as catalog:
            row, first = catalog.views.get("w"), catalog.views.get("x")
            assert (row.oldest_cn, row.cn, row.delta_version) == (7, 7, None)
            assert (row.base_cn, catalog.views.bases(4)) == (7, [Base(7, 4)])
            assert (first.oldest_cn, first.cn) == (3, None)
            assert catalog.views.bases(3) == [Base(5, 2)], "what has changes keeps all of it"
            assert catalog.gaps.of([3]) == [Gap(3, 2, 5), Gap(3, 5, 7)]


def test_a_catalog_of_format_8_gets_leases_of_streams(tmp_path: Path) -> None:
    with Catalog.create(tmp_path, SetClock(100)) as catalog:
        catalog.sources.register("s", "sqlite")
    with closing(sqlite3.connect(tmp_path / "catalog.db")) as old, old:
        as_format_8(old)
    for _ in range(2):
        with Catalog.create(tmp_path, SetClock(100)) as catalog:
            assert [source.name for source in catalog.sources.states()] == ["s"]
            assert catalog.leases.all() == {}


def test_a_manager_has_its_streams_until_they_are_handed_over_or_out_anew(tmp_path: Path) -> None:
    with Catalog.create(tmp_path, SetClock(100)) as catalog:
        first = catalog.leases.hand_out({"a": 0, "b": 1})
        assert catalog.leases.held(0, first) == {"a"}
        catalog.leases.hand_over("a", 1)
        assert catalog.leases.held(0, first) == frozenset()
        assert catalog.leases.held(1, first) == {"a", "b"}
        nothing = catalog.leases.hand_out({})
        assert catalog.leases.held(1, first) is None
        assert nothing < catalog.leases.hand_out({"a": 0})
