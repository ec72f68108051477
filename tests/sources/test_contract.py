"""Every family keeps `steadyview.sources.contract`: one suite, run on real databases of each."""

from __future__ import annotations

import threading
import time
from collections import Counter

import pyarrow as pa
import pytest

from steadyview.errors import ChangesLost, ColumnLost, ConfigError, SourceRefused
from steadyview.sources import Read, open_source
from tests.sources.world import Watch, World, answer, images, replayed

ITEMS = "id INTEGER PRIMARY KEY, name TEXT, price DECIMAL(10,2)"


@pytest.fixture
def items(world: World) -> Watch:
    world.table("items", ITEMS)
    return world.watch("items")


def rows(watch: Watch, number: int = 0) -> list[tuple[object, ...]]:
    """(count, first column, second column) of every image, in order."""
    found = images(watch.chunks, watch.relations[number].name)
    return [(r["_count"], r["c0"], r["c1"]) for r in found]


def test_transactions_come_whole_in_order_and_densely_numbered(items: Watch) -> None:
    writer = items.world.writer()
    for n in range(5):
        writer.execute("BEGIN")
        writer.execute("INSERT INTO items VALUES (?, 'a', 1)", 10 * n)
        writer.execute("INSERT INTO items VALUES (?, 'b', 2)", 10 * n + 1)
        writer.execute("COMMIT")
        items.take_transaction()
    assert [t.seq for t in items.transactions] == [1, 2, 3, 4, 5]
    assert [t.rows for t in items.transactions] == [2] * 5
    found = images(items.chunks, items.relations[0].name)
    assert [r["_seq"] for r in found] == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert [r["c0"] for r in found] == [0, 1, 10, 11, 20, 21, 30, 31, 40, 41]
    tags = {(t.seq, t.id) for t in items.transactions}
    assert {(r["_seq"], r["_tx"]) for r in found} == tags


def test_an_update_is_its_old_row_and_its_new_row(items: Watch) -> None:
    writer = items.world.writer()
    writer.execute("INSERT INTO items VALUES (1, 'a', 1)")
    items.take_transaction()
    writer.execute("UPDATE items SET id = 2, name = NULL WHERE id = 1")
    items.take_transaction()
    writer.execute("DELETE FROM items")
    items.take_transaction()
    assert rows(items) == [(1, 1, "a"), (-1, 1, "a"), (1, 2, None), (-1, 2, None)]


def test_rolled_back_work_is_never_seen(items: Watch) -> None:
    writer = items.world.writer()
    writer.execute("BEGIN")
    writer.execute("INSERT INTO items VALUES (1, 'gone', 1)")
    writer.execute("ROLLBACK")
    writer.execute("BEGIN")
    writer.execute("INSERT INTO items VALUES (2, 'kept', 1)")
    writer.execute("SAVEPOINT s")
    writer.execute("UPDATE items SET name = 'gone' WHERE id = 2")
    writer.execute("INSERT INTO items VALUES (3, 'gone', 1)")
    writer.execute("ROLLBACK TO SAVEPOINT s")
    writer.execute("INSERT INTO items VALUES (4, 'kept', 1)")
    writer.execute("COMMIT")
    items.drain()
    assert rows(items) == [(1, 2, "kept"), (1, 4, "kept")]
    assert [t.seq for t in items.transactions] == [1]


def test_a_transaction_without_watched_changes_has_no_number(items: Watch) -> None:
    items.world.table("other", "id INTEGER")
    writer = items.world.writer()
    writer.execute("INSERT INTO other VALUES (1)")
    writer.execute("INSERT INTO items VALUES (1, 'a', 1)")
    items.drain()
    writer.execute("INSERT INTO other VALUES (1)")
    writer.execute("INSERT INTO items VALUES (2, 'a', 1)")
    items.drain()
    assert [t.seq for t in items.transactions] == [1, 2]
    assert len(items.relations) == 1


def test_one_transaction_over_two_relations_is_one_transaction(world: World) -> None:
    world.table("a", "id INTEGER PRIMARY KEY")
    world.table("b", "id INTEGER PRIMARY KEY")
    watch = world.watch("a", "b")
    writer = world.writer()
    writer.execute("BEGIN")
    writer.execute("INSERT INTO a VALUES (1)")
    writer.execute("INSERT INTO b VALUES (2)")
    writer.execute("INSERT INTO a VALUES (3)")
    writer.execute("COMMIT")
    watch.take_transaction()
    assert [(t.seq, t.rows) for t in watch.transactions] == [(1, 3)]
    assert watch.replay(watch.relations[0]) == Counter([(1,), (3,)])
    assert watch.replay(watch.relations[1]) == Counter([(2,)])


def test_the_stream_resumes_at_every_position_it_gave(items: Watch) -> None:
    writer = items.world.writer()
    for n in range(6):
        writer.execute("INSERT INTO items VALUES (?, 'x', 1)", n)
        if n:
            writer.execute("UPDATE items SET name = 'y' WHERE id = ?", n - 1)
        items.take_transaction()
        items.drain()
    name, delivered = items.relations[0].name, items.chunks
    for cut in range(len(delivered)):
        before, after = delivered[: cut + 1], delivered[cut + 1 :]
        position = items.source.position(str(before[-1].position))
        seq = 1 + sum(len(c.transactions) for c in before)
        items.world.reopen(items, position, seq)
        items.drain()
        assert items.replay(items.relations[0]) == replayed(after, name)
        seqs = [t.seq for t in items.transactions]
        assert seqs == list(range(seq, seq + len(seqs)))


def look_until(watch: Watch, heard: int) -> None:
    """Take what comes until the source was heard from beyond that time."""
    while watch.monitor.heard < heard:
        if (chunk := watch.monitor.poll(0.02)) is not None:
            watch.chunks.append(chunk)
            watch.proofs[str(chunk.position)] = watch.monitor.proof


def test_the_stream_is_divided_at_a_time_and_heard_beyond_it_also_if_nothing_comes(
    items: Watch,
) -> None:
    writer = items.world.writer()
    first = time.time_ns() // 1000 + 300_000
    items.monitor.divide((first,))
    writer.execute("INSERT INTO items VALUES (1, 'a', 1)")
    look_until(items, first)
    for n in (2, 3):
        writer.execute("INSERT INTO items VALUES (?, 'a', 1)", n)
    second = time.time_ns() // 1000
    items.monitor.divide((first, second))
    look_until(items, second)
    seqs = {
        late: [t.seq for c in items.chunks if (c.dated > first) == late for t in c.transactions]
        for late in (False, True)
    }
    assert seqs[False] == [1]
    # two commits that a file shows at one look are one
    assert seqs[True] in ([2, 3], [2])
    assert all(first not in c.mixed for c in items.chunks)
    # the place between the two is one to go on from
    place = [c.position for c in items.chunks if c.dated <= first][-1]
    items.world.reopen(items, place, 2)
    items.drain()
    assert rows(items) == [(1, 2, "a"), (1, 3, "a")]


def test_what_was_committed_at_both_sides_of_a_time_while_nobody_looked(items: Watch) -> None:
    writer, pause = items.world.writer(), threading.Event()
    writer.execute("INSERT INTO items VALUES (1, 'a', 1)")
    between = time.time_ns() // 1000 + 20_000
    pause.wait(0.15)
    writer.execute("INSERT INTO items VALUES (2, 'a', 1)")
    items.monitor.divide((between,))
    items.drain()
    chunks = [c for c in items.chunks if c.transactions]
    if items.source.time() is None:
        # a file does not tell: all of it counts as later, and that is told
        assert [(c.dated > between, c.mixed) for c in chunks] == [(True, (between,))]
    else:
        assert [(c.dated > between, c.mixed) for c in chunks] == [(False, ()), (True, ())]
    assert rows(items) == [(1, 1, "a"), (1, 2, "a")]


def test_what_was_acknowledged_does_not_come_again_and_what_was_not_does(items: Watch) -> None:
    writer = items.world.writer()
    writer.execute("INSERT INTO items VALUES (1, 'a', 1)")
    first = items.take_transaction()
    writer.execute("INSERT INTO items VALUES (2, 'b', 1)")
    items.take_transaction()
    items.monitor.acknowledge(first.position)
    items.world.reopen(items, first.position, 2)
    items.take_transaction()
    assert rows(items) == [(1, 2, "b")]
    assert [t.seq for t in items.transactions] == [2]


def test_changes_that_the_source_has_forgotten_are_a_definite_error(items: Watch) -> None:
    writer = items.world.writer()
    writer.execute("INSERT INTO items VALUES (1, 'a', 1)")
    items.monitor.acknowledge(items.take_transaction().position)
    items.drain()
    items.monitor.acknowledge(items.chunks[-1].position)
    with pytest.raises(ChangesLost, match="no longer keeps the changes after position"):
        items.world.reopen(items, items.start, 1)


def test_a_source_set_up_anew_does_not_continue_an_old_position(items: Watch) -> None:
    writer = items.world.writer()
    writer.execute("INSERT INTO items VALUES (1, 'a', 1)")
    position = items.take_transaction().position
    items.monitor.close()
    items.source.remove()
    writer.execute("INSERT INTO items VALUES (2, 'unseen', 1)")
    items.source.prepare(items.relations)
    for n in range(3, 9):
        writer.execute("INSERT INTO items VALUES (?, 'seen', 1)", n)
    with pytest.raises(ChangesLost):
        items.world.reopen(items, position, 2)


def test_a_snapshot_is_frozen_and_knows_what_it_reflects(items: Watch) -> None:
    writer = items.world.writer()
    writer.execute("INSERT INTO items VALUES (1, 'a', 1)")
    snapshot = items.source.snapshot()
    writer.execute("INSERT INTO items VALUES (2, 'b', 1)")
    writer.execute("DELETE FROM items WHERE id = 1")
    relation = items.relations[0]
    assert answer(snapshot, relation, [0, 1]) == Counter([(1, "a")])
    items.catch_up(snapshot)
    items.drain()
    reflected = [t.seq for t in items.transactions if snapshot.reflects(t)]
    assert items.replay(relation, reflected) == answer(snapshot, relation)
    assert reflected == [1]
    assert len(items.transactions) > 1
    snapshot.close()
    snapshot.close()


def test_a_snapshot_of_another_process_is_never_cut_through_a_transaction(items: Watch) -> None:
    """A second source object shares nothing with the first but the database."""
    other = items.world.source("items")
    writer = items.world.writer()
    writer.execute("INSERT INTO items VALUES (1, 'a', 1)")
    snapshot = other.snapshot()
    writer.execute("INSERT INTO items VALUES (2, 'b', 1)")
    items.drain()
    reflected = [t.seq for t in items.transactions if snapshot.reflects(t)]
    assert items.replay(items.relations[0], reflected) == answer(snapshot, items.relations[0])
    snapshot.close()


def test_duplicate_rows_are_counted(world: World) -> None:
    world.table("bag", "a INTEGER, b TEXT")
    watch = world.watch("bag")
    writer = world.writer()
    writer.execute(
        "INSERT INTO bag VALUES (1, 'x'), (1, 'x'), (NULL, NULL), (NULL, NULL), (1, 'x')"
    )
    watch.drain()
    snapshot = watch.source.snapshot()
    expected = Counter({(1, "x"): 3, (None, None): 2})
    assert watch.replay(watch.relations[0]) == expected
    assert answer(snapshot, watch.relations[0]) == expected
    snapshot.close()


def test_rows_of_one_column_keep_null_apart_from_empty_text(world: World) -> None:
    world.table("one", "a TEXT")
    watch = world.watch("one")
    values = ["", None, "NULL", "NA", '"', "\\N", "\\.", " ", "a\nb", "a\r\nb", "ünï ✓", ","]
    writer = world.writer()
    for value in values:
        writer.execute("INSERT INTO one VALUES (?)", value)
    watch.drain()
    snapshot = watch.source.snapshot()
    assert answer(snapshot, watch.relations[0]) == Counter((v,) for v in values)
    assert watch.replay(watch.relations[0]) == Counter((v,) for v in values)
    snapshot.close()


def test_a_lookup_finds_every_row_once(items: Watch) -> None:
    writer = items.world.writer()
    names = ["a", "b", "it's", 'quo"te', "back\\slash", "{x}", "null", "", "a,b", "ä"]
    for n, name in enumerate(names):
        writer.execute("INSERT INTO items VALUES (?, ?, 1)", n, name)
    writer.execute("INSERT INTO items VALUES (100, NULL, 1)")
    snapshot = items.source.snapshot()
    relation = items.relations[0]
    wanted = [*names, "absent", "nul\0byte"]
    found = answer(snapshot, relation, [0, 1], key=1, values=pa.array(wanted))
    assert found == Counter((n, name) for n, name in enumerate(names))
    numbers = pa.array(
        [3, 100, 77], pa.int32() if relation.columns[0].type == "INT" else pa.int64()
    )
    assert answer(snapshot, relation, [1], key=0, values=numbers) == Counter([('quo"te',), (None,)])
    assert answer(snapshot, relation, [1], key=0, values=numbers.slice(0, 0)) == Counter()
    snapshot.close()


def test_a_large_answer_comes_in_batches_and_in_disjoint_parts(items: Watch) -> None:
    writer = items.world.writer()
    size = 60_000
    writer.execute(
        "INSERT INTO items WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
        f" WHERE i < {size}) SELECT i, 'name ' || i, i FROM n"
    )
    snapshot = items.source.snapshot()
    found = answer(snapshot, items.relations[0], [0], parallelism=4)
    assert found == Counter((i,) for i in range(1, size + 1))
    keys = pa.array(
        range(0, size, 3), pa.int32() if items.world.family == "postgresql" else pa.int64()
    )
    found = answer(snapshot, items.relations[0], [0], key=0, values=keys)
    assert found == Counter((i,) for i in range(3, size, 3))
    snapshot.close()


STRANGE = [
    "Upper",
    "two words",
    'quo"te',
    "select",
    "größe",
    "semi;colon",
    "per%cent",
    "dot.ted",
    "it's",
]


def test_strange_identifiers_are_only_names(world: World) -> None:
    def quoted(name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    for table in STRANGE:
        columns = ", ".join(f"{quoted(c)} INTEGER" for c in STRANGE)
        world.table(
            quoted(table), f"{columns}, PRIMARY KEY ({quoted(STRANGE[0])}, {quoted(STRANGE[1])})"
        )
    watch = world.watch(*map(quoted, STRANGE))
    assert [r.name.path[-1] for r in watch.relations] == STRANGE
    assert [[c.name for c in r.columns] for r in watch.relations] == [STRANGE] * len(STRANGE)
    writer = world.writer()
    for table in STRANGE:
        writer.execute(f"INSERT INTO {quoted(table)} VALUES (1, 2, 3, 4, 5, 6, 7, 8, 9)")
        writer.execute(f"UPDATE {quoted(table)} SET {quoted(STRANGE[2])} = 0")
    watch.drain()
    snapshot = watch.source.snapshot()
    for relation in watch.relations:
        expected = Counter([(1, 2, 0, 4, 5, 6, 7, 8, 9)])
        assert watch.replay(relation) == expected
        number = pa.array([8], pa.int32() if world.family == "postgresql" else pa.int64())
        assert answer(snapshot, relation, key=7, values=number) == expected
    snapshot.close()


def test_looking_for_obstacles_changes_nothing(world: World) -> None:
    world.table("items", ITEMS)
    source = world.source("items")
    assert source.obstacles(source.schemas()) == []
    assert world.traces() == []
    source.prepare(source.schemas())
    assert source.obstacles(source.schemas()) == []


def test_prepare_does_nothing_twice_and_remove_leaves_nothing(items: Watch) -> None:
    assert items.source.prepare(items.relations) == []
    assert items.world.traces()
    items.monitor.close()
    assert items.source.remove()
    assert items.world.traces() == []
    assert items.source.remove() == []
    items.world.writer().execute("INSERT INTO items VALUES (1, 'still works', 1)")


def test_a_table_added_later_is_captured_from_then_on(items: Watch) -> None:
    world = items.world
    world.table("late", "id INTEGER PRIMARY KEY")
    writer = world.writer()
    writer.execute("INSERT INTO late VALUES (1)")
    items.source = world.source("items", "late")
    items.relations = list(items.source.schemas())
    assert any("late" in line for line in items.source.prepare(items.relations))
    world.reopen(items, items.start, 1)
    base = items.source.snapshot()
    writer.execute("INSERT INTO late VALUES (2)")
    items.drain()
    after = items.source.snapshot()
    unseen = [t.seq for t in items.transactions if not base.reflects(t)]
    late = items.relations[1]
    assert answer(base, late) + items.replay(late, unseen) == answer(after, late)
    assert answer(after, late) == Counter([(1,), (2,)])
    base.close()
    after.close()


def test_an_added_column_is_ignored_and_the_stream_goes_on(items: Watch) -> None:
    writer = items.world.writer()
    writer.execute("INSERT INTO items VALUES (1, 'a', 1)")
    items.take_transaction()
    writer.execute("ALTER TABLE items ADD COLUMN extra TEXT DEFAULT 'x'")
    writer.execute("INSERT INTO items (id, name, extra) VALUES (2, 'b', 'y')")
    items.drain()
    assert items.lost == {}
    snapshot = items.source.snapshot()
    assert items.replay(items.relations[0]) == answer(snapshot, items.relations[0])
    snapshot.close()


def test_an_added_column_is_captured_after_the_source_was_prepared_again(items: Watch) -> None:
    writer = items.world.writer()
    writer.execute("INSERT INTO items VALUES (1, 'a', 1)")
    position = items.take_transaction().position
    writer.execute("ALTER TABLE items ADD COLUMN extra TEXT")
    items.relations = list(items.source.schemas())
    items.source.prepare(items.relations)
    items.world.reopen(items, position, 2)
    writer.execute("INSERT INTO items VALUES (2, 'b', 2, 'new')")
    items.drain()
    assert [(r["c0"], r["c3"]) for r in images(items.chunks, items.relations[0].name)] == [
        (2, "new")
    ]
    assert items.lost == {}


def test_reads_of_one_snapshot_may_be_interleaved(items: Watch) -> None:
    writer = items.world.writer()
    for n in range(4):
        writer.execute("INSERT INTO items VALUES (?, ?, 1)", n, f"n{n % 2}")
    snapshot = items.source.snapshot()
    reads = [Read(items.relations[0], (0,), 1, pa.array([key])) for key in ("n0", "n1")]
    streams = [task.batches() for read in reads for task in snapshot.tasks(read)]
    firsts = [next(s) for s in streams]
    assert [b.column(0).to_pylist() for b in firsts] == [[0, 2], [1, 3]]
    assert [list(s) for s in streams] == [[], []]
    # A read that is given up leaves the snapshot usable.
    abandoned = snapshot.tasks(Read(items.relations[0], (0,)))[0].batches()
    next(abandoned)
    abandoned.close()
    assert len(answer(snapshot, items.relations[0])) == 4
    snapshot.close()


def test_a_renamed_column_is_lost_and_the_others_are_not(items: Watch) -> None:
    writer = items.world.writer()
    writer.execute("INSERT INTO items VALUES (1, 'a', 1)")
    items.take_transaction()
    writer.execute("ALTER TABLE items RENAME COLUMN name TO title")
    writer.execute("INSERT INTO items VALUES (2, 'b', 2)")
    items.drain()
    assert list(items.lost) == [("items", "name")]
    assert "name" in items.lost["items", "name"]
    last = images(items.chunks, items.relations[0].name)[-1]
    assert (last["c0"], last["c1"], last["_seq"]) == (2, None, 2)
    assert [x.seq for c in items.chunks for x in c.lost][0] == 2


def test_a_snapshot_refuses_a_column_that_is_gone_and_reads_the_others(items: Watch) -> None:
    writer = items.world.writer()
    writer.execute("INSERT INTO items VALUES (1, 'a', 1)")
    writer.execute("ALTER TABLE items RENAME COLUMN name TO title")
    snapshot = items.source.snapshot()
    with pytest.raises(ColumnLost) as caught:
        answer(snapshot, items.relations[0])
    assert (caught.value.column, caught.value.relation.split(".")[-1]) == ("name", "items")
    assert answer(snapshot, items.relations[0], [0]) == Counter([(1,)])
    snapshot.close()


def test_a_table_made_anew_is_lost_and_the_others_are_not(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steadyview.sources.postgres.monitor.LOOK_SECONDS", 0.0)
    world.table("items", ITEMS)
    world.table("other", "id INTEGER PRIMARY KEY")
    watch = world.watch("items", "other")
    writer = world.writer()
    writer.execute("INSERT INTO items VALUES (1, 'a', 1)")
    watch.take_transaction()
    writer.execute("DROP TABLE items")
    world.table("items", ITEMS)
    writer.execute("INSERT INTO items VALUES (2, 'unseen', 1)")
    watch.source.snapshot().close()
    watch.take_transaction()
    assert {t for t, _ in watch.lost} == {"items"}
    # Not even setting the source up again hides that changes went unseen.
    watch.source.prepare(watch.source.schemas())
    world.reopen(watch, watch.start, 1)
    writer.execute("INSERT INTO other VALUES (1)")
    watch.drain()
    assert {t for t, _ in watch.lost} == {"items"}
    assert watch.replay(watch.relations[1]) == Counter([(1,)])


def test_unsupported_columns_are_left_out_with_a_reason(world: World) -> None:
    exotic = "point" if world.family == "postgresql" else "GEOMETRY"
    world.table("shapes", f"id INTEGER PRIMARY KEY, shape {exotic}, name TEXT")
    watch = world.watch("shapes")
    assert [c.name for c in watch.relations[0].columns] == ["id", "name"]
    reasons = watch.source.unsupported()[watch.relations[0].name]
    assert exotic in reasons["shape"]
    world.writer().execute("INSERT INTO shapes (id, shape, name) VALUES (1, '(1,2)', 'a')")
    watch.drain()
    assert watch.replay(watch.relations[0]) == Counter([(1, "a")])


def test_keys_and_indexes_are_described(world: World) -> None:
    columns = "a INTEGER NOT NULL, b TEXT NOT NULL, c INTEGER, d INTEGER, PRIMARY KEY (b, a)"
    world.table("t", columns)
    writer = world.writer()
    writer.execute("CREATE INDEX by_c ON t (c, d)")
    writer.execute("CREATE INDEX some_d ON t (d) WHERE d > 5")
    (relation,) = world.source("t").schemas()
    assert relation.key == relation.primary == ("b", "a")
    assert set(relation.indexes) == {"b", "c"}


def test_tables_that_cannot_be_watched_are_refused_by_name(world: World) -> None:
    world.table("items", ITEMS)
    world.writer().execute("CREATE VIEW seen AS SELECT * FROM items")
    for table in ("seen", "absent"):
        with pytest.raises(SourceRefused, match=table):
            world.source(table).schemas()


def test_wrong_settings_are_refused(world: World) -> None:
    for settings in (
        {"type": "oracle", "tables": ["t"]},
        {**world.settings, "tables": ["t"], "colour": "red"},
        {**world.settings},
        {**world.settings, "tables": ["a b c"]},
    ):
        with pytest.raises((ConfigError, SourceRefused)):
            open_source("src", settings, world.folder).schemas()


def test_positions_read_back_and_compare(items: Watch) -> None:
    items.world.writer().execute("INSERT INTO items VALUES (1, 'a', 1)")
    later = items.take_transaction().position
    assert items.source.position(str(later)) == later
    assert items.start <= later
    assert not later <= items.start
