"""Every store keeps the contract, whatever order, repetition and delay its writers have."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from steadyview.changes import arrow_type
from steadyview.errors import StoreRefused, StoreUnavailable
from steadyview.serving.contract import Addition, Position, Put, RecordStore, TestAndSet
from steadyview.serving.images import COUNT
from steadyview.serving.json_texts import key_text
from steadyview.serving.layout import CHANGES, CN, ROWS, RecordLayout, Records
from steadyview.serving.writing import Batch, write
from tests.serving.stores import FAMILIES, Place, place

COLUMNS = (("region", "STRING"), ("n", "BIGINT"), ("x", "DECIMAL(12,2)"))
LAYOUT = RecordLayout("sales", COLUMNS, ("region",))
KEYS = ("EU", None, 'qu"ote\\', "ü\n", "NULL")
State = dict[Any, tuple[int, Decimal | None]]


@pytest.fixture(params=FAMILIES)
def at(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    with place(request.param, tmp_path) as found:
        yield found


@pytest.fixture
def store(at: Place) -> Iterator[RecordStore]:
    with at.open() as opened:
        opened.prepare()
        yield opened


class History:
    """A view with one row per key at most, at every cn, and its change table."""

    def __init__(self, dice: random.Random, commits: int) -> None:
        self.states: list[State] = [{}]
        self.rows: list[tuple[Any, ...]] = []
        for cn in range(1, commits + 1):
            state = dict(self.states[-1])
            for key in dice.sample(KEYS, dice.randrange(3)):
                value = (dice.randrange(3), dice.choice((None, Decimal("1.50"), Decimal("-7.00"))))
                if key in state and dice.random() < 0.4:
                    del state[key]
                else:
                    state[key] = value
            before = self.states[-1]
            for key in KEYS:
                if before.get(key) != state.get(key):
                    self.rows += [(key, *before[key], -1, cn)] if key in before else []
                    self.rows += [(key, *state[key], 1, cn)] if key in state else []
            self.states.append(state)

    def changes(self, after: int, upto: int) -> pa.Table:
        rows = [row for row in self.rows if after < row[-1] <= upto]
        types = [*(arrow_type(t) for _, t in LAYOUT.columns), pa.int64(), pa.int64()]
        names = [*(n for n, _ in LAYOUT.columns), COUNT, CN]
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
        return pa.table([pa.array(c, t) for c, t in zip(columns, types, strict=True)], names=names)


def text(key: Any) -> str:
    return key_text([key], ["STRING"])


def shown(store: RecordStore, records: Records) -> tuple[int, State]:
    reading = store.read(records, [text(key) for key in KEYS])
    assert reading is not None
    cn = reading.position.entry
    versions = {key: found.at(cn) for key, found in zip(KEYS, reading.found, strict=True)}
    alive = {k: v.values for k, v in versions.items() if v is not None and v.values is not None}
    return cn, {k: (v["n"], v["x"]) for k, v in alive.items()}


NEW = "there were none"


def begun(store: RecordStore, layout: RecordLayout = LAYOUT) -> Records:
    records = store.begin(layout, "w1", 7, NEW)
    if not layout.sums:
        assert store.position(records, CHANGES) == Position(-1, 0, -1)
        store.switch(records, CHANGES, Position(0, 0, 0))
    return records


@pytest.mark.parametrize("seed", range(12))
def test_readers_see_the_state_at_the_watermark_whatever_writers_do(
    store: RecordStore, seed: int
) -> None:
    dice = random.Random(seed)
    history = History(dice, 14)
    records = begun(store)
    calls: list[tuple[int, int]] = []
    done = 0
    while done < 14:
        # what is published only grows: a batch that is done again ends no earlier
        upto = dice.randrange(max(done + 1, calls[-1][1] if calls else 0), 15)
        calls.append((done, upto))
        # some of it, cut otherwise, late, and again: as many tasks do that were given up
        for after, end in dice.choices(calls, k=dice.randrange(4)):
            rows = history.changes(after, end)
            some = [key for key in KEYS if dice.random() < 0.7]
            keep = pa.array([region in some for region in rows["region"].to_pylist()], pa.bool_())
            written = write(store, Batch(records, after=after), rows.filter(keep))
            assert written.twice == []
            assert shown(store, records) == (done, history.states[done])
        if dice.random() < 0.3:
            continue
        assert write(store, Batch(records, after=done), history.changes(done, upto)).twice == []
        assert shown(store, records) == (done, history.states[done])
        before, done = done, upto
        store.move(records, CHANGES, upto, upto * 10)
        assert shown(store, records) == (done, history.states[done])
        if dice.random() < 0.5:
            store.reclaim(records, CHANGES, before)
    for after, end in calls:
        write(store, Batch(records, after=after), history.changes(after, end))
    assert shown(store, records) == (14, history.states[14])
    store.reclaim(records, CHANGES, 14)
    for after, end in calls:
        write(store, Batch(records, after=after), history.changes(after, end))
    assert shown(store, records) == (14, history.states[14])
    counts = store.counts(records)
    assert (counts.records, counts.tombstones) == (len(history.states[14]), 0)
    with store.rows(records) as (cn, pieces):
        rows = [row for piece in pieces for row in zip(*piece.to_pydict().values(), strict=True)]
    assert (cn, {row[0]: row[1:] for row in rows}) == (14, history.states[14])
    assert len(rows) == len(history.states[14])


def test_a_second_row_of_a_key_is_told_also_where_it_is_gone_again(store: RecordStore) -> None:
    records = begun(store)
    names = [*(n for n, _ in COLUMNS), COUNT, CN]

    def rows(*told: tuple[Any, ...]) -> pa.Table:
        types = [*(arrow_type(t) for _, t in COLUMNS), pa.int64(), pa.int64()]
        columns = zip(*told, strict=True)
        return pa.table([pa.array(c, t) for c, t in zip(columns, types, strict=True)], names=names)

    write(store, Batch(records), rows(("EU", 1, None, 1, 1)))
    store.move(records, CHANGES, 1, 1)
    more = rows(("EU", 2, None, 1, 2), ("EU", 2, None, -1, 3))
    assert write(store, Batch(records, after=1), more).twice == ['["EU"]']
    assert shown(store, records) == (1, {"EU": (1, None)})
    # of a batch that was half written, what it has put is no second row
    write(store, Batch(records, after=1), rows(("AS", 1, None, 1, 2)))
    again = rows(("AS", 1, None, 1, 2), ("AS", 1, None, -1, 3))
    assert write(store, Batch(records, after=1), again).twice == []


def test_positions_and_floors_never_go_back(store: RecordStore) -> None:
    records = begun(store)
    store.move(records, CHANGES, 9, 90)
    store.move(records, CHANGES, 5, 50)
    store.reclaim(records, CHANGES, 4)
    store.reclaim(records, CHANGES, 3)
    assert store.position(records, CHANGES) == Position(9, 90, 4)


def test_values_of_every_type_come_back_as_they_were(store: RecordStore) -> None:
    types = {
        "BOOLEAN": [True, False, None],
        "INT": [2**31 - 1, -(2**31), None],
        "BIGINT": [2**63 - 1, -(2**63), None],
        "DOUBLE": [0.1 + 0.2, float("inf"), float("nan")],
        "FLOAT": [1.5, float("-inf"), None],
        "STRING": ["", "x" * 1_000_000, "ü \U0001f600 \x01 \\ \" '"],
        "BINARY": [b"", bytes(range(256)), None],
        "DECIMAL(38,10)": [Decimal("1e-10"), Decimal("-12345678901234567890.0123456789"), None],
        "DATE": [date(1, 1, 1), date(2026, 2, 3), None],
        "TIMESTAMP": [datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC), None, None],
        "TIMESTAMP_NTZ": [datetime(2026, 1, 2, 3, 4, 5, 6), None, None],
    }
    columns = (("id", "INT"), *((f"c {i}%", t) for i, t in enumerate(types)))
    layout = RecordLayout("typed", columns, ("id",))
    records = begun(store, layout)
    values = {"id": [1, 2, 3], **{f"c {i}%": v for i, v in enumerate(types.values())}}
    rows = pa.table({n: pa.array(values[n], arrow_type(t)) for n, t in columns})
    write(store, Batch(records, 1), rows)
    store.move(records, CHANGES, 1, 1)
    reading = store.read(records, ["[1]", "[2]", "[3]"])
    assert reading is not None
    for i, found in enumerate(reading.found):
        assert found.now is not None
        assert found.now.values is not None
        for name, _ in columns[1:]:
            assert repr(found.now.values[name]) == repr(values[name][i]), name
    with store.rows(records) as (_, pieces):
        stored = pa.concat_tables(pieces).sort_by("id")
    assert repr(stored.to_pydict()) == repr(rows.to_pydict())


def test_a_key_of_any_length_is_found(store: RecordStore) -> None:
    records = begun(store)
    keys = ["k" * n for n in (990, 997, 998, 5_000, 1_000_000)]
    rows = pa.table(
        {
            "region": pa.array(keys),
            "n": pa.array(range(len(keys)), pa.int64()),
            "x": pa.array([None] * len(keys), pa.decimal128(12, 2)),
        }
    )
    write(store, Batch(records, 1), rows)
    store.move(records, CHANGES, 1, 1)
    reading = store.read(records, [text(key) for key in keys])
    assert reading is not None
    assert [f.now.values["n"] for f in reading.found if f.now and f.now.values] == [0, 1, 2, 3, 4]


def test_a_rebuild_is_seen_in_one_step_and_old_writers_reach_nothing(store: RecordStore) -> None:
    history = History(random.Random(1), 9)
    old = begun(store)
    write(store, Batch(old), history.changes(0, 4))
    store.move(old, CHANGES, 4, 40)
    new = store.begin(LAYOUT, "w1", 8, "the view was built anew")
    write(store, Batch(new), history.changes(0, 9))
    assert shown(store, old) == (4, history.states[4])
    store.switch(new, CHANGES, Position(9, 90, 9))
    assert store.read(old, [text("EU")]) is None
    assert shown(store, new) == (9, history.states[9])
    assert store.sweep("sales") == 1
    with suppress(StoreUnavailable):
        # its records are gone
        write(store, Batch(old), history.changes(0, 9))
    found = store.find("SALES")
    assert found is not None
    assert found.records == new
    assert shown(store, new) == (9, history.states[9])
    store.forget("sales")
    store.forget("sales")
    assert store.views() == []


def test_a_view_of_another_warehouse_is_refused(store: RecordStore) -> None:
    begun(store)
    with pytest.raises(StoreRefused, match="another warehouse"):
        store.begin(LAYOUT, "w2", 7, "there were none")


def test_its_identity_stays_and_is_no_other_stores(at: Place, store: RecordStore) -> None:
    with at.open() as again:
        again.prepare()
        assert again.identity() == store.identity() is not None


# --- records kept from the update log ------------------------------------------------------------

SUMMED = RecordLayout(
    "sums",
    COLUMNS,
    ("region",),
    ((ROWS, "BIGINT"), ("n", "BIGINT"), ("x", "DECIMAL(12,2)")),
)


@pytest.mark.parametrize("seed", range(8))
def test_additions_count_once_however_often_they_come(store: RecordStore, seed: int) -> None:
    dice = random.Random(seed)
    records = begun(store, SUMMED)
    given: dict[str, list[Addition]] = {"s1": [], "s 2'": []}
    expected: dict[Any, list[Any]] = {}
    for _ in range(40):
        key, stream = dice.choice(KEYS[:3]), dice.choice([*given])
        rows = dice.choice((1, 1, -1)) if expected.get(key, [0])[0] else 1
        amount = Decimal(dice.randrange(-500, 500)) / 100
        now = expected.setdefault(key, [0, 0, Decimal(0)])
        # what a group is left with when its last row goes is nothing
        sums = [rows, -now[1], -now[2]] if now[0] + rows == 0 else [rows, rows * 3, amount]
        expected[key] = [a + b for a, b in zip(now, sums, strict=True)]
        entry = len(given[stream]) + 1
        named = dict(zip((ROWS, "n", "x"), sums, strict=True))
        given[stream].append(Addition((key,), entry, named))
        start = dice.randrange(max(1, entry - 4), entry + 1)
        for _ in range(dice.randrange(1, 3)):
            store.add(records, stream, given[stream][start - 1 :])
            # a second copy begins earlier; what is missing in between was done by the first
            start = max(1, start - dice.randrange(3))
        _check_sums(store, records, expected)
        if dice.random() < 0.2:
            for name, done in given.items():
                store.move(records, name, len(done), 0)
                store.reclaim(records, name, len(done))
    for name, additions in given.items():
        store.add(records, name, additions)
    _check_sums(store, records, expected)


def _check_sums(store: RecordStore, records: Records, expected: dict[Any, list[Any]]) -> None:
    found = store.signed(records, [(key,) for key in KEYS[:3]])
    for key, signed in zip(KEYS[:3], found, strict=True):
        rows = expected.get(key, [0])
        if not rows[0]:
            assert signed.values is None
        else:
            assert signed.values is not None
            assert [signed.values[n] for n in (ROWS, "n", "x")] == rows


def test_puts_of_an_older_entry_change_nothing(store: RecordStore) -> None:
    records = begun(store, SUMMED)
    store.put(records, "s", [Put(("EU",), 5, {"n": 5}), Put((None,), 6, {"n": 6})])
    store.put(records, "s", [Put(("EU",), 4, {"n": 4}), Put((None,), 7, None)])
    store.put(records, "s", [Put((None,), 6, {"n": 6})])
    eu, none = store.signed(records, [("EU",), (None,)])
    assert (eu.values or {})["n"] == 5
    assert (none.values, none.signature) == (None, {"s": 7})


def test_test_and_set_passes_for_the_expected_signature_alone(store: RecordStore) -> None:
    records = begun(store, SUMMED)

    def tried(there: bool, expected: dict[str, int], n: int | None, new: dict[str, int]) -> bool:
        values = None if n is None else {ROWS: 1, "n": n, "x": Decimal(0)}
        (passed,) = store.test_and_set(
            records, [TestAndSet(("EU",), expected, there, values, new)]
        )
        return passed

    assert not tried(True, {}, 1, {"s": 1})
    assert tried(False, {}, 1, {"s": 1})
    assert not tried(False, {}, 2, {"s": 2})
    assert not tried(True, {}, 2, {"s": 2})
    assert tried(True, {"s": 1}, 2, {"s": 1, "t": 4})
    assert store.signed(records, [("EU",)])[0].signature == {"s": 1, "t": 4}
    assert tried(True, {"t": 4, "s": 1}, None, {"s": 2, "t": 4})
    assert not tried(True, {"s": 2, "t": 4}, 3, {"s": 3, "t": 4})
    assert not tried(False, {}, 3, {"s": 3, "t": 4})
    store.move(records, "s", 2, 0)
    store.move(records, "t", 4, 0)
    store.reclaim(records, "s", 2)
    store.reclaim(records, "t", 4)
    assert store.counts(records).tombstones == 0
    assert store.signed(records, [("EU",)])[0].signature == {"s": 2, "t": 4}
    assert not tried(False, {}, 3, {"s": 3, "t": 4})
    assert tried(False, {"s": 2, "t": 4}, 3, {"s": 3, "t": 4})


def test_managers_that_test_and_set_lose_no_update(at: Place, store: RecordStore) -> None:
    records = begun(store, SUMMED)

    def manager(stream: str) -> None:
        with at.open() as mine:
            for entry in range(1, 21):
                while True:
                    (now,) = mine.signed(records, [("EU",)])
                    n = 0 if now.values is None else now.values["n"]
                    test = TestAndSet(
                        ("EU",),
                        now.signature,
                        now.values is not None,
                        {ROWS: 1, "n": n + 1, "x": Decimal(0)},
                        {**now.signature, stream: entry},
                    )
                    if mine.test_and_set(records, [test]) == [True]:
                        break

    managers = [threading.Thread(target=manager, args=(name,)) for name in ("a", "b")]
    for one in managers:
        one.start()
    for one in managers:
        one.join()
    (now,) = store.signed(records, [("EU",)])
    assert (now.values or {})["n"] == 40
    assert now.signature == {"a": 20, "b": 20}
