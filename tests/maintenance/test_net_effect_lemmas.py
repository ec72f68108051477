"""Beyer et al., section 5: Lemmas 9, 10 and 11, in our words, over drawn deltas.

They are why an apply step may take the records of many transactions as one change: Algorithm 2's
last step here (`ipda/records.py`), and in the product every roll of a base and every read of a
state, which add up the view delta between two commits (`warehouse/apply.py`, `states.py`).
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyview.algebra import Bag
from steadyview.maintenance.ipda.records import DeltaRecord, net_effect, rolled

GROUPS = "ab"
KEYS = (51, 52)
NAMES = ("Paul", "Peter", "Patty")


def record(number: int, group, *amounts: int) -> DeltaRecord:
    return DeltaRecord(number, f"x{number}", "v", group, amounts)


def one_by_one(view: dict, records: list[DeltaRecord]) -> dict:
    """Each record by itself, in order; a group without rows is no group."""
    found = dict(view)
    for r in records:
        before = found.pop(r.group, (0,) * len(r.amounts))
        after = tuple(a + b for a, b in zip(before, r.amounts, strict=True))
        assert after[0] >= 0, "not in the proper order"
        if after[0]:
            found[r.group] = after
    return found


@st.composite
def summaries(draw):
    """Rows (group, value) that come and go: count and sum of what each statement does."""
    there: list[tuple[str, int]] = []
    records = []
    for number in range(draw(st.integers(0, 12))):
        group = draw(st.sampled_from(GROUPS))
        mine = [row for row in there if row[0] == group]
        gone = draw(st.lists(st.sampled_from(range(len(mine))), unique=True)) if mine else []
        come = draw(st.lists(st.integers(-3, 3), max_size=2))
        amounts = len(come) - len(gone), sum(come) - sum(mine[i][1] for i in gone)
        for i in gone:
            there.remove(mine[i])
        there += [(group, value) for value in come]
        records.append(record(number, (group,), *amounts))
    return records, there


@given(delta=summaries(), data=st.data())
def test_lemma_9_a_summary_delta_has_the_effect_of_its_net_effect(delta, data) -> None:
    """The groups' counts and sums are the same, whether each record is applied or their sums are.

    From any state on the way to the end, the net taken of its records in any order.
    """
    records, there = delta
    begun = data.draw(st.integers(0, len(records)))
    view = one_by_one({}, records[:begun])
    direct = one_by_one(view, records[begun:])
    assert rolled(view, net_effect(data.draw(st.permutations(records[begun:])))) == direct
    rows = {g: [v for group, v in there if group == g] for g in GROUPS}
    assert direct == {(g,): (len(values), sum(values)) for g, values in rows.items() if values}


def test_lemma_9_needs_groups_whose_count_did_not_change() -> None:
    """One row went and one came: a count of zero, and yet a change."""
    net = net_effect([record(1, ("a",), -1, -5), record(2, ("a",), 1, 7)])
    assert net == {("a",): (0, 2)}
    assert rolled({("a",): (3, 9)}, net) == {("a",): (3, 11)}


@st.composite
def bags(draw):
    """Rows that come and go, with duplicates."""
    there: list[str] = draw(st.lists(st.sampled_from(GROUPS), max_size=3))
    first, records = Bag.of(there), []
    for number in range(draw(st.integers(0, 12))):
        row = draw(st.sampled_from(GROUPS))
        sign = -1 if row in there and draw(st.booleans()) else 1
        there.append(row) if sign > 0 else there.remove(row)
        records.append(record(number, (row,), sign))
    return {(row,): (count,) for row, count in first}, records, Bag.of(there)


@given(delta=bags(), data=st.data())
def test_lemma_10_a_delta_of_rows_has_the_effect_of_its_net_effect(delta, data) -> None:
    """Insertions and deletions of rows, duplicates counted: the same as in their proper order."""
    view, records, there = delta
    net = net_effect(data.draw(st.permutations(records)))
    assert rolled(view, net) == one_by_one(view, records)
    assert rolled(view, net) == {(row,): (count,) for row, count in there}


@st.composite
def keyed(draw):
    """A view with a key: a row of a key is deleted before the key's next one is inserted."""
    first = {key: draw(st.sampled_from(NAMES)) for key in KEYS if draw(st.booleans())}
    there, records = dict(first), []
    for number in range(draw(st.integers(0, 10))):
        key = draw(st.sampled_from(KEYS))
        if key in there:
            records.append(record(number, (key, there.pop(key)), -1))
        else:
            there[key] = draw(st.sampled_from(NAMES))
            records.append(record(number, (key, there[key]), 1))
    return first, records, there


@given(delta=keyed())
def test_lemma_11_of_a_key_at_most_one_row_goes_and_one_comes(delta) -> None:
    """The net effect over a view with a key: at most a deletion of the row there and an insertion.

    So with all deletions first a unique index is never broken, and nothing is deleted that is not
    there.
    """
    first, records, there = delta
    net = net_effect(records)
    for key in KEYS:
        rows = [(name, count) for (k, name), (count,) in net.items() if k == key]
        assert [name for name, count in rows if count < 0] in ([], [first.get(key)])
        assert [name for name, count in rows if count > 0] in ([], [there.get(key)])
        assert {abs(count) for _, count in rows} <= {1}
    index = dict(first)
    for (key, name), (count,) in sorted(net.items(), key=lambda entry: entry[1]):
        if count < 0:
            assert index.pop(key) == name
        else:
            assert index.setdefault(key, name) == name
    assert index == there


SALE = [
    record(5, (52, "Paul's Petunias"), -1),
    record(5, (52, "Peter's Petunias"), 1),
    record(9, (52, "Peter's Petunias"), -1),
    record(9, (52, "Patty's Petunias"), 1),
]


def test_the_sale_of_the_petunias() -> None:
    """Section 5's example: only the first and the last of four records are left."""
    net = net_effect(SALE)
    assert net == {(52, "Paul's Petunias"): (-1,), (52, "Patty's Petunias"): (1,)}
    assert rolled({(52, "Paul's Petunias"): (1,)}, net) == {(52, "Patty's Petunias"): (1,)}


def test_single_records_out_of_order_delete_what_is_not_there() -> None:
    with pytest.raises(ValueError, match="would have -1 rows"):
        rolled({(52, "Paul's Petunias"): (1,)}, net_effect(SALE[2:3]))
