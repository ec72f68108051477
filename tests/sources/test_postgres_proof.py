"""Capture goes on only at a server with the captured past: restored, swapped, crashed, promoted."""

from __future__ import annotations

import json
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steadyview.changes import Chunk, RelationSchema, StreamPosition
from steadyview.errors import ChangesLost, SourceDiverged, SourceUnavailable
from steadyview.sources import Monitor, Source, open_source
from steadyview.sources.contract import Owner
from steadyview.sources.postgres import monitor as monitoring
from steadyview.sources.postgres.names import own_name
from steadyview.sources.postgres.position import Lsn
from tests.sources.own_server import OwnServer, own_server
from tests.sources.world import PostgresWorld, replayed

WAREHOUSE = "0a1b2c3d"
SLOT = own_name("src", WAREHOUSE)


class Reader:
    """What a warehouse does: take chunks, remember position and proof together, acknowledge."""

    def __init__(self, url: str, **settings: Any) -> None:
        given = {"type": "postgresql", "url": url, "tables": ["t"], **settings}
        self.source: Source = open_source("src", given, Path(), Owner(WAREHOUSE))
        self.relations: list[RelationSchema] = list(self.source.schemas())
        self.source.prepare(self.relations)
        self.relations = list(self.source.schemas())
        self.position: StreamPosition = self.source.start()
        self.chunks: list[Chunk] = []
        self.proof = ""
        self.monitor: Monitor | None = None

    @property
    def last(self) -> int:
        return sum(len(c.transactions) for c in self.chunks)

    def open(self) -> None:
        """A new life: another source object, another monitor."""
        self.close()
        self.monitor = self.source.monitor(
            self.relations, self.position, self.last + 1, self.proof
        )

    def read(self, *, durable: bool = True) -> None:
        """Everything committed up to now."""
        snapshot = self.source.snapshot()
        horizon = snapshot.horizon
        snapshot.close()
        assert self.monitor is not None
        while not horizon <= self.position:
            chunk = self.monitor.poll(20)
            assert chunk is not None, "no chunk came"
            self.chunks.append(chunk)
            self.position, self.proof = chunk.position, self.monitor.proof
            if durable:
                self.monitor.acknowledge(chunk.position)

    def rows(self) -> Counter[tuple[Any, ...]]:
        return replayed(self.chunks, self.relations[0].name)

    def close(self) -> None:
        if self.monitor is not None:
            self.monitor.close()
        self.source.close()


@pytest.fixture
def server() -> Iterator[OwnServer]:
    with own_server() as made:
        made.execute("CREATE TABLE t (id integer PRIMARY KEY)")
        made.execute("ALTER TABLE t REPLICA IDENTITY FULL")
        yield made


@pytest.fixture
def reader(server: OwnServer) -> Iterator[Reader]:
    made = Reader(server.url)
    made.open()
    yield made
    made.close()


def insert(server: OwnServer, *numbers: int) -> None:
    for number in numbers:
        server.execute("INSERT INTO t VALUES (%s)", number)


def write_past(server: OwnServer, position: StreamPosition) -> None:
    """Until the server's log reaches past a position again."""
    server.execute("CREATE TABLE IF NOT EXISTS filler (x text)")
    while True:
        server.execute("INSERT INTO filler SELECT repeat('x', 1000) FROM generate_series(1, 100)")
        ((end,),) = server.execute("SELECT pg_current_wal_flush_lsn()::text")
        if position <= Lsn.parse(end):
            return


def test_a_crashed_server_goes_on_with_nothing_lost_and_nothing_twice(
    server: OwnServer, reader: Reader
) -> None:
    insert(server, 1, 2)
    reader.read()
    before = json.loads(reader.proof)
    insert(server, 3)
    server.restart()
    insert(server, 4)
    reader.open()
    reader.read()
    assert reader.rows() == Counter([(1,), (2,), (3,), (4,)])
    after = json.loads(reader.proof)
    assert (before["system"], before["database"]) == (after["system"], after["database"])
    assert before["started"] != after["started"]


def test_a_restarted_server_is_proved_without_any_new_change(
    server: OwnServer, reader: Reader
) -> None:
    insert(server, 1)
    reader.read()
    server.restart()
    with pytest.raises(SourceUnavailable, match="not proved"):
        reader.source.examine(reader.relations, reader.proof)
    reader.open()
    assert reader.monitor is not None
    while reader.monitor.proof == reader.proof:
        reader.monitor.poll(0.1)
    reader.source.examine(reader.relations, reader.monitor.proof)


@pytest.mark.parametrize("running", [False, True])
def test_a_server_restored_from_a_copy_and_written_past_the_position_is_refused(
    server: OwnServer, reader: Reader, running: bool
) -> None:
    insert(server, 1, 2)
    reader.read()
    server.copy("copy")
    reader.open()
    insert(server, 3, 4)
    reader.read()
    if not running:
        reader.close()
    server.restore("copy")
    insert(server, 5)
    write_past(server, reader.position)
    insert(server, 10)
    if running:
        assert reader.monitor is not None
        with pytest.raises(SourceUnavailable):
            reader.monitor.poll(20)
        with pytest.raises(SourceUnavailable, match="not proved"):
            reader.source.examine(reader.relations, reader.proof)
    with pytest.raises(SourceDiverged) as refused:
        reopened(reader)
    assert "restored from a copy" in refused.value.message
    assert "expected our marker" in str(refused.value.detail)
    assert refused.value.hint == "run: steadyview source resnapshot src"


def reopened(reader: Reader) -> None:
    """Open again and read; nothing may be delivered before the past is proved."""
    reader.open()
    assert reader.monitor is not None
    for _ in range(200):
        assert reader.monitor.poll(0.1) is None
    raise AssertionError("neither refused nor proved")


def test_a_server_restored_to_a_state_behind_the_marker_but_before_the_last_transaction_is_refused(
    server: OwnServer, reader: Reader
) -> None:
    """The marker is found again; what was captured after it is not."""
    without_markers(reader)
    insert(server, 1)
    reader.read()
    marker = json.loads(reader.proof)["marker"]
    insert(server, 2)
    take_one(reader)
    server.copy("copy")
    reader.open()
    without_markers(reader)
    insert(server, 3)
    take_one(reader)
    assert json.loads(reader.proof)["marker"] == marker
    reader.close()
    server.restore("copy")
    insert(server, 5)
    write_past(server, reader.position)
    with pytest.raises(SourceDiverged, match="digest"):
        reopened(reader)


def without_markers(reader: Reader) -> None:
    """The monitor sends none of its own."""
    monitor: Any = reader.monitor
    monitor._mark = lambda: None


def take_one(reader: Reader) -> None:
    """One transaction."""
    assert reader.monitor is not None
    known = reader.last
    while reader.last == known:
        chunk = reader.monitor.poll(20)
        assert chunk is not None
        reader.chunks.append(chunk)
        if chunk.transactions:
            reader.position, reader.proof = chunk.position, reader.monitor.proof
            reader.monitor.acknowledge(chunk.position)


def test_a_restored_server_whose_log_is_still_shorter_is_refused(
    server: OwnServer, reader: Reader
) -> None:
    insert(server, 1)
    reader.read()
    server.copy("copy")
    reader.open()
    write_past(server, Lsn(reader.position.value + (1 << 20)))
    insert(server, 2)
    reader.read()
    reader.close()
    server.restore("copy")
    with pytest.raises(SourceDiverged, match="found one that ends at"):
        reader.open()


def test_a_restored_server_that_has_everything_that_was_captured_goes_on(
    server: OwnServer, reader: Reader
) -> None:
    insert(server, 1, 2)
    reader.read()
    reader.close()
    server.copy("copy")
    insert(server, 3)
    server.restore("copy")
    insert(server, 4)
    reader.open()
    reader.read()
    assert reader.rows() == Counter([(1,), (2,), (4,)])


def test_another_cluster_with_such_a_slot_is_refused(
    server: OwnServer, reader: Reader
) -> None:
    insert(server, 1)
    reader.read()
    reader.close()
    with own_server() as other:
        other.execute("CREATE TABLE t (id integer PRIMARY KEY)")
        other.execute("ALTER TABLE t REPLICA IDENTITY FULL")
        twin = Reader(other.url)
        write_past(other, reader.position)
        with pytest.raises(SourceDiverged, match="another database") as refused:
            twin.source.monitor(reader.relations, reader.position, 2, reader.proof)
        assert json.loads(reader.proof)["system"] in str(refused.value.detail)
        with pytest.raises(SourceDiverged, match="another database"):
            twin.source.examine(reader.relations, reader.proof)
        twin.close()


def test_a_database_made_anew_in_the_same_cluster_is_refused(postgres: PostgresWorld) -> None:
    postgres.table("t", "id integer")
    watch = postgres.watch("t")
    watch.drain()
    proof = json.loads(watch.monitor.proof)
    proof["database"] = "1"
    with pytest.raises(SourceDiverged, match="another database"):
        watch.source.examine(watch.relations, json.dumps(proof))
    with pytest.raises(SourceDiverged, match="another database"):
        watch.source.monitor(watch.relations, watch.start, 1, json.dumps(proof))


def test_a_promoted_standby_without_the_slot_has_lost_changes_and_with_it_goes_on(
    server: OwnServer, reader: Reader
) -> None:
    # until it has the slot, the new primary does not know what the slot needs
    server.execute("ALTER SYSTEM SET wal_keep_size = '256MB'")
    insert(server, 1)
    reader.read()
    server.back_up("standby")
    insert(server, 2)
    reader.read()
    primary = server.fail_over("standby")
    with pytest.raises(ChangesLost, match="does not exist"):
        reader.source.monitor(reader.relations, reader.position, 3, reader.proof)
    server.stop()
    copy_of_slot = [f"{folder}/pg_replslot/{SLOT}" for folder in (primary, server.data)]
    subprocess.run(["cp", "-a", *copy_of_slot], check=True)
    server.start()
    insert(server, 3)
    reader.open()
    reader.read()
    assert reader.rows() == Counter([(1,), (2,), (3,)])


def test_a_proof_of_before_there_were_proofs_is_nothing_to_be_proved(
    postgres: PostgresWorld,
) -> None:
    postgres.table("t", "id integer")
    watch = postgres.watch("t")
    postgres.writer().execute("INSERT INTO t VALUES (1)")
    watch.drain()
    watch.proofs[str(watch.start)] = '{"format": 1}'
    postgres.reopen(watch, watch.start, 1)
    watch.drain()
    assert watch.replay(watch.relations[0]) == Counter([(1,)])
    assert json.loads(watch.monitor.proof)["marker"].startswith(postgres.owner.warehouse)


def test_every_position_is_proved_with_other_writers_and_other_warehouses_in_between(
    postgres: PostgresWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The history does not depend on what is watched: one more relation changes nothing."""
    monkeypatch.setattr(monitoring, "MARK_SECONDS", 0.0)
    postgres.table("t", "id integer")
    postgres.table("u", "id integer")
    watch = postgres.watch("t", "u")
    both, watch.relations = watch.relations, watch.relations[:1]
    postgres.reopen(watch, watch.start, 1)
    writer = postgres.writer()
    for number in range(5):
        writer.execute("INSERT INTO u VALUES (?)", number)
        writer.execute("INSERT INTO t VALUES (?)", number)
        writer.execute("SELECT pg_logical_emit_message(true, 'steadyview', 'ffffffff other')")
        watch.take_transaction()
    taken, watch.relations = list(watch.chunks), both
    for at, chunk in enumerate(taken):
        seq = 1 + sum(len(c.transactions) for c in taken[: at + 1])
        postgres.reopen(watch, chunk.position, seq)
        watch.drain()
        seen = replayed(watch.chunks, both[0].name)
        assert seen == replayed(taken[at + 1 :], both[0].name)


def test_a_large_transaction_is_replayed_without_being_kept(postgres: PostgresWorld) -> None:
    postgres.table("t", "id integer, v text")
    watch = postgres.watch("t")
    writer = postgres.writer()
    writer.execute("INSERT INTO t SELECT n, repeat('x', 100) FROM generate_series(1, 300000) n")
    watch.take_transaction()
    assert any(c.open for c in watch.chunks)
    writer.execute("INSERT INTO t VALUES (0, 'after')")
    postgres.reopen(watch, watch.chunks[-1].position, 2)
    watch.drain()
    assert [t.seq for t in watch.transactions] == [2]
    assert watch.replay(watch.relations[0]) == Counter([(0, "after")])


def test_the_slot_moves_on_and_stands_still_when_nothing_is_written(
    postgres: PostgresWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitoring, "MARK_SECONDS", 0.0)
    monkeypatch.setattr(monitoring, "UNMARKED_BYTES", 10_000)
    postgres.table("t", "id integer")
    postgres.table("busy", "id integer")
    watch = postgres.watch("t")
    writer = postgres.writer()
    writer.execute("INSERT INTO busy SELECT generate_series(1, 10000)")
    ((end,),) = writer.execute("SELECT pg_current_wal_flush_lsn()::text")
    confirmed = "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = ?"
    while not Lsn.parse(end) <= Lsn.parse(writer.execute(confirmed, postgres.slot)[0][0]):
        chunk = watch.monitor.poll(2)
        if chunk is not None:
            watch.monitor.acknowledge(chunk.position)
    ((settled,),) = writer.execute("SELECT pg_current_wal_insert_lsn()::text")
    for _ in range(20):
        chunk = watch.monitor.poll(0.05)
        if chunk is not None:
            watch.monitor.acknowledge(chunk.position)
    ((after,),) = writer.execute("SELECT pg_current_wal_insert_lsn()::text")
    assert Lsn.parse(after).value - Lsn.parse(settled).value < 2000


def test_two_warehouses_do_not_answer_each_others_markers(
    postgres: PostgresWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitoring, "MARK_SECONDS", 0.0)
    postgres.table("t", "id integer")
    first = postgres.watch("t")
    postgres.owner = Owner(f"f{postgres.owner.warehouse[1:]}")
    second = postgres.watch("t")
    writer = postgres.writer()
    writer.execute("INSERT INTO t VALUES (1)")
    sent: list[object] = []
    for watch in (first, second):
        monitor: Any = watch.monitor
        mark = monitor._mark
        monitor._mark = lambda mark=mark: sent.append(mark())
    for _ in range(10):
        for watch in (first, second):
            watch.drain()
    # drains send markers by snapshots; the monitors themselves need one each at most
    assert len(sent) <= 4


def test_a_server_shuts_down_without_waiting_for_what_is_not_durable(
    server: OwnServer, reader: Reader
) -> None:
    insert(server, 1)
    reader.read(durable=False)
    assert reader.monitor is not None
    stopping = threading.Thread(target=server.stop, args=("fast",))
    stopping.start()
    with pytest.raises(SourceUnavailable):
        reader.monitor.poll(60)
    stopping.join()
    server.start()
    reader.open()
    insert(server, 2)
    reader.read()
    assert reader.rows() == Counter([(1,), (2,)])
