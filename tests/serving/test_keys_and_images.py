"""A key is the same text by Arrow and one by one; a post-image is what the state says."""

from __future__ import annotations

import json
import random
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyview.changes import arrow_type
from steadyview.errors import ConfigError
from steadyview.serving.images import COUNT, images_of_changes, images_of_state
from steadyview.serving.json_texts import exact, key_text, key_texts, object_texts, value_of
from steadyview.serving.layout import CN, DEAD, KEY, RecordLayout

VALUES = {
    "STRING": st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "INT": st.integers(-(2**31), 2**31 - 1),
    "BOOLEAN": st.booleans(),
    "DECIMAL(12,2)": st.decimals(-999999, 999999, places=2),
    "DECIMAL(20,12)": st.decimals(-1, 1, places=12),
    "DATE": st.dates(date(1, 1, 1), date(9999, 12, 31)),
    "TIMESTAMP": st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC)),
    "TIMESTAMP_NTZ": st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)),
    "BINARY": st.binary(max_size=20),
}


@given(st.data())
def test_a_key_is_the_same_by_arrow_and_one_by_one(data: st.DataObject) -> None:
    types = data.draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=4))
    row = [data.draw(st.none() | VALUES[t]) for t in types]
    arrays = [pa.array([v], arrow_type(t)) for v, t in zip(row, types, strict=True)]
    columns = [pa.chunked_array([array]) for array in arrays]
    (found,) = key_texts(columns, types).to_pylist()
    assert found == key_text(row, types)
    told = json.loads(found)
    assert [value_of(v, t) for v, t in zip(told, types, strict=True)] == [
        exact(v, t) for v, t in zip(row, types, strict=True)
    ]


@given(st.lists(st.none() | st.floats(), min_size=1, max_size=5))
def test_a_fraction_comes_back_from_json_as_it_was(values: list[float | None]) -> None:
    rows = pa.table({'a "b"': pa.array(values, pa.float64())})
    texts = object_texts(rows, [('a "b"', "DOUBLE")]).to_pylist()
    # there is one zero
    expected = [repr(None if v is None else v + 0.0) for v in values]
    found = [json.loads(t)['a "b"'] for t in texts]
    assert [repr(value_of(v, "DOUBLE")) for v in found] == expected


@pytest.mark.parametrize(
    ("value", "type_"), [("x", "INT"), (1.5, "INT"), ("1.005", "DECIMAL(4,2)"), (7, "STRING")]
)
def test_what_is_no_value_of_the_type_is_refused(value: object, type_: str) -> None:
    with pytest.raises(ConfigError, match=f"is no {type_[:3]}"):
        exact(value, type_)


LAYOUT = RecordLayout("v", (("k", "STRING"), ("x", "BIGINT")), ("k",))
KEYS = ("a", "b", None)


@given(st.integers(0, 10**6))
def test_images_are_the_state_at_the_end_and_two_rows_of_a_key_are_told(seed: int) -> None:
    dice = random.Random(seed)
    start = {k: 0 for k in KEYS if dice.random() < 0.5}
    state: Counter[tuple[str | None, int]] = Counter((k, x) for k, x in start.items())
    rows, last, unique = [], {}, True
    seen: set[str | None] = set()
    for cn in range(1, dice.randrange(2, 7)):
        before = Counter(state)
        for key in dice.sample(KEYS, dice.randrange(1, 3)):
            there = [row for row in state.elements() if row[0] == key]
            if there and dice.random() < 0.8:
                state[there[0]] -= 1
            if dice.random() < (0.7 if not there else 0.5):
                state[key, dice.randrange(3)] += 1
        for row in {*before, *state}:
            if n := state[row] - before[row]:
                # a change need not be one row
                split = [(*row, n + 1, cn), (*row, -1, cn)]
                rows += [(*row, n, cn)] if dice.random() < 0.5 else split
                last[row[0]] = cn
        per_key = Counter(row[0] for row in state.elements())
        seen |= set(per_key)
        unique = unique and max(per_key.values(), default=0) <= 1
    types = [pa.string(), pa.int64(), pa.int64(), pa.int64()]
    columns = list(zip(*rows, strict=True)) if rows else [()] * 4
    arrays = [pa.array(c, t) for c, t in zip(columns, types, strict=True)]
    images = images_of_changes(pa.table(arrays, names=["k", "x", COUNT, CN]), LAYOUT)
    if not unique:
        # a key that had a row at the start is found by whoever knows the store
        keys = {json.loads(key)[0] for key in images.new.to_pylist()}
        assert len(images.twice) or keys & set(start)
        return
    assert images.twice.to_pylist() == []
    found = {r["k"]: r for r in images.rows.to_pylist()}
    assert len(found) == images.rows.num_rows
    assert {k: r[CN] for k, r in found.items()} == last
    now = dict(state.elements())
    for key, row in found.items():
        assert (row[DEAD], row["x"]) == ((False, now[key]) if key in now else (True, None))
        assert row[KEY] == key_text([key], ["STRING"])
    assert set(images.new.to_pylist()) == {key_text([k], ["STRING"]) for k in seen - set(start)}


def test_a_state_with_two_rows_of_a_key_is_told() -> None:
    rows = pa.table({"k": pa.array(["a", "b", "a"]), "x": pa.array([1, 2, 1], pa.int64())})
    images = images_of_state(rows, LAYOUT, 5)
    assert images.twice.to_pylist() == ['["a"]']
    assert images.rows[CN].to_pylist() == [5, 5, 5]


def test_decimals_of_a_key_have_all_their_digits() -> None:
    assert key_text([Decimal("1.5")], ["DECIMAL(4,2)"]) == '["1.50"]'
