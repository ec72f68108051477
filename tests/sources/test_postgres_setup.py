"""What we set up at a server, under which names, what stands in the way, and where it is cut."""

from __future__ import annotations

import json
import socket
from collections import Counter
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from steadyview.errors import ChangesLost, SourceRefused, SourceUnavailable
from steadyview.sources import Read, Snapshot, Source, open_source
from steadyview.sources.contract import Owner, Span
from steadyview.sources.postgres import open_transactions
from steadyview.sources.postgres.connection import Address
from steadyview.sources.postgres.names import own_name, plain_name
from tests.sources.world import PostgresWorld, Watch


def other_warehouse(postgres: PostgresWorld) -> Owner:
    return Owner(f"f{postgres.owner.warehouse[1:]}")


def opened(postgres: PostgresWorld, owner: Owner, **settings: str) -> Source:
    return open_source("src", {**postgres.settings, "tables": ["t"], **settings}, Path(), owner)


def as_role(postgres: PostgresWorld, role: str) -> Source:
    url = postgres.database.url.replace("postgres:@", f"{role}@")
    return open_source("src", {**postgres.settings, "url": url, "tables": ["t"]}, Path())


def test_names_of_slots_are_unique_and_short_enough() -> None:
    long = "a" * 60
    names = [own_name(s, "0a1b2c3d") for s in ("Sales EU", "sales_eu", long, long + "b")]
    assert len(set(names)) == 4
    assert max(map(len, names)) <= 63
    assert all(n.endswith("_0a1b2c3d") for n in names)
    assert own_name("x", "00000001") != own_name("x", "00000002")


def test_two_warehouses_over_one_database_have_their_own_slots_and_share_the_publication(
    postgres: PostgresWorld,
) -> None:
    postgres.table("t", "id integer")
    first = postgres.watch("t")
    postgres.owner = other_warehouse(postgres)
    second = postgres.watch("t")
    postgres.writer().execute("INSERT INTO t VALUES (1)")
    for watch in (first, second):
        watch.drain()
        assert watch.replay(watch.relations[0]) == Counter([(1,)])
        watch.monitor.close()
    assert len(postgres.traces()) == 3
    left = first.source.remove()
    assert 'left publication "steadyview_src" to another warehouse' in left
    assert len(postgres.traces()) == 2
    assert first.source.remove() == []
    second.source.remove()
    assert postgres.traces() == []


def test_a_publication_of_somebody_else_is_never_altered_nor_dropped(
    postgres: PostgresWorld,
) -> None:
    """Not even one that our role owns."""
    postgres.table("t", "id integer")
    postgres.table("u", "id integer")
    writer = postgres.writer()
    writer.execute("CREATE PUBLICATION theirs FOR TABLE ONLY t")
    postgres.settings["publication"] = "theirs"
    source = postgres.source("t", "u")
    (obstacle,) = source.obstacles(source.schemas())
    with pytest.raises(SourceRefused, match="lacks") as refused:
        source.prepare(source.schemas())
    assert obstacle.hint == refused.value.hint
    assert postgres.traces() == ["theirs"]
    writer.execute(str(refused.value.hint).partition(": ")[2])
    source.prepare(source.schemas())
    assert source.holdings() == [h for h in source.holdings() if "slot" in h]
    source.remove()
    assert postgres.traces() == ["theirs"]
    assert writer.execute("SELECT obj_description(oid) FROM pg_publication") == [(None,)]


def test_a_slot_that_is_not_ours_is_neither_read_nor_dropped(postgres: PostgresWorld) -> None:
    postgres.table("t", "id integer")
    name = f"theirs_{postgres.owner.warehouse}"
    postgres.writer().execute("SELECT pg_create_logical_replication_slot(?, 'pgoutput')", name)
    source = opened(postgres, postgres.owner, slot=name)
    with pytest.raises(SourceRefused, match="belongs to something else"):
        source.prepare(source.schemas())
    assert source.remove() == []
    assert source.holdings() == []
    assert postgres.traces() == [name]
    source.close()


def test_a_slot_named_by_hand_is_ours_when_capture_went_by_it(postgres: PostgresWorld) -> None:
    postgres.table("t", "id integer")
    name = f"own_{postgres.owner.warehouse}"
    first = opened(postgres, postgres.owner, slot=name)
    first.prepare(first.schemas())
    monitor = first.monitor(first.schemas(), first.start(), 1)
    proof = monitor.proof
    monitor.close()
    again = opened(postgres, Owner(postgres.owner.warehouse, proof), slot=name)
    assert again.prepare(again.schemas()) == []
    renamed = opened(postgres, Owner(postgres.owner.warehouse, proof), slot="other")
    with pytest.raises(SourceRefused, match=f'captured through slot "{name}"'):
        renamed.prepare(renamed.schemas())
    # without the tables and the names: only how to reach it, and what is remembered
    url = {"type": "postgresql", "url": postgres.database.url}
    forgotten = open_source("src", url, Path(), Owner(postgres.owner.warehouse, proof))
    slot, publication = forgotten.holdings()
    assert slot.startswith(f'replication slot "{name}", which holds back ')
    assert publication == 'publication "steadyview_src"'
    assert len(forgotten.remove()) == 2
    assert postgres.traces() == []
    for source in (first, again, renamed, forgotten):
        source.close()


def test_what_an_older_version_set_up_is_taken_over(postgres: PostgresWorld) -> None:
    """It named slot and publication alike, without the warehouse."""
    postgres.table("t", "id integer")
    writer = postgres.writer()
    name = plain_name(f"old_{postgres.database.name}")
    writer.execute(f"CREATE PUBLICATION {name} FOR TABLE ONLY t")
    writer.execute("SELECT pg_create_logical_replication_slot(?, 'pgoutput')", name)
    settings = {**postgres.settings, "tables": ["t"]}
    older = Owner(postgres.owner.warehouse, '{"format": 1}')
    source = open_source(f"old_{postgres.database.name}", settings, Path(), older)
    assert source.prepare(source.schemas()) == []
    monitor = source.monitor(source.schemas(), source.start(), 1, older.proof)
    proof = json.loads(monitor.proof)
    assert (proof["slot"], proof["publication"]) == (name, name)
    monitor.close()
    assert len(source.remove()) == 2
    assert postgres.traces() == []
    source.close()


def test_a_transaction_that_keeps_the_slot_from_being_made_is_named(
    postgres: PostgresWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres.table("t", "id integer")
    writer = postgres.writer()
    writer.execute("BEGIN; INSERT INTO t VALUES (1)")
    ((pid,),) = writer.execute("SELECT pg_backend_pid()")
    source = postgres.source("t")
    relations = source.schemas()
    monkeypatch.setattr(open_transactions, "PATIENCE", 1)
    with pytest.raises(SourceUnavailable, match="transaction open") as waited:
        source.prepare(relations)
    assert f'process {pid} of role "postgres"' in str(waited.value.detail)
    assert "open since" in str(waited.value.detail)
    writer.execute("COMMIT")
    assert source.prepare(relations)


def test_row_level_security_is_found_beforehand(postgres: PostgresWorld) -> None:
    postgres.table("t", "id integer")
    writer = postgres.writer()
    writer.execute(f"CREATE PUBLICATION {postgres.publication} FOR TABLE ONLY t")
    writer.execute("ALTER TABLE t ENABLE ROW LEVEL SECURITY")
    writer.execute("CREATE ROLE shortsighted LOGIN REPLICATION; GRANT SELECT ON t TO shortsighted")
    try:
        source = as_role(postgres, "shortsighted")
        (obstacle,) = source.obstacles(source.schemas())
        assert "row-level security" in obstacle.message
        writer.execute(str(obstacle.hint).partition(": ")[2])
        assert source.obstacles(source.schemas()) == []
        source.close()
    finally:
        writer.execute("DROP OWNED BY shortsighted; DROP ROLE shortsighted")


def test_an_error_is_classified_before_a_short_password_is_taken_out(
    postgres: PostgresWorld,
) -> None:
    url = postgres.database.url.replace("postgres:@", "absent:x@")
    with pytest.raises(SourceRefused, match="does not let us in") as refused:
        Address("src", url).connect()
    assert 'role "absent" does not exist' in str(refused.value.detail)
    address = Address("src", "postgresql://u:x@127.0.0.1/db")
    assert address.scrub("exist: u:x@127.0.0.1 password=x") == "exist: u:***@127.0.0.1 password=***"


def test_an_attempt_to_connect_is_given_up_when_patience_ends() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        url = f"postgresql://u@127.0.0.1:{port}/db?connect_timeout=90"
        assert conninfo_to_dict(Address("src", url, 3).conninfo())["connect_timeout"] == "3"
        settings = {"type": "postgresql", "url": url, "tables": ["t"]}
        with pytest.raises(SourceUnavailable, match="does not answer"):
            open_source("src", settings, Path(), patience=3).schemas()


def test_a_publication_missing_for_a_while_stops_the_stream_or_loses_the_relation(
    postgres: PostgresWorld,
) -> None:
    """Before PostgreSQL 18 the server cannot go on there; later ones leave the changes out."""
    postgres.table("t", "id integer")
    watch = postgres.watch("t")
    watch.drain()
    writer = postgres.writer()
    writer.execute(f"DROP PUBLICATION {postgres.publication}")
    writer.execute("INSERT INTO t VALUES (1)")
    writer.execute(f"CREATE PUBLICATION {postgres.publication} FOR TABLE ONLY t")
    postgres.reopen(watch, watch.chunks[-1].position, 1)
    if postgres.version < 18:
        with pytest.raises(ChangesLost, match="without its publication"):
            watch.drain()
    else:
        watch.drain()
        assert set(watch.lost) == {("t", None)}
    # from a new start on, everything is there again
    watch.monitor.close()
    postgres.wait_until_unread()
    watch.relations, watch.proofs = list(watch.source.schemas()), {}
    postgres.reopen(watch, watch.source.start(), 1)
    writer.execute("INSERT INTO t VALUES (2)")
    watch.drain()
    assert watch.replay(watch.relations[0]) == Counter([(2,)])
    assert watch.lost == {}


def spanned(snapshot: Snapshot, watch: Watch, span: Span) -> list[int]:
    """The ids in one span."""
    read = Read(watch.relations[0], (0,), span=span)
    tasks = snapshot.tasks(read, 4)
    return [r["c0"] for t in tasks for b in t.batches() for r in b.to_pylist()]


@pytest.mark.parametrize("key", ["id bigint PRIMARY KEY", "id smallint NOT NULL UNIQUE"])
def test_spans_hold_every_row_once_and_are_of_like_size(postgres: PostgresWorld, key: str) -> None:
    postgres.table("t", f"{key}, v text")
    watch = postgres.watch("t")
    writer = postgres.writer()
    # half of the values far apart, half side by side
    writer.execute("INSERT INTO t SELECT n, repeat('x', 50) FROM generate_series(1, 5000) n")
    writer.execute("INSERT INTO t SELECT -5 * n FROM generate_series(1, 5000) n")
    snapshot = watch.source.snapshot()
    spans = snapshot.spans(watch.relations[0], 1000)
    parts = [spanned(snapshot, watch, s) for s in spans]
    assert sorted(i for part in parts for i in part) == sorted(
        [*range(1, 5001), *range(-25000, 0, 5)]
    )
    assert 5 <= len(spans) <= 20
    assert max(map(len, parts)) < 3000
    assert (spans[0].low, spans[-1].high) == (None, None)
    assert all(a.high == b.low for a, b in zip(spans, spans[1:], strict=False))
    assert snapshot.spans(watch.relations[0], 1_000_000) == []
    snapshot.close()


@pytest.mark.parametrize(
    "columns",
    ["id int", "id int UNIQUE", "id text PRIMARY KEY", "id int, w int, PRIMARY KEY (id, w)"],
)
def test_there_are_no_spans_without_a_key_of_one_whole_number(
    postgres: PostgresWorld, columns: str
) -> None:
    postgres.table("t", columns)
    watch = postgres.watch("t")
    values = "n, n" if "w" in columns else "n"
    postgres.writer().execute(f"INSERT INTO t SELECT {values} FROM generate_series(1, 5000) n")
    snapshot = watch.source.snapshot()
    assert snapshot.spans(watch.relations[0], 10) == []
    snapshot.close()
