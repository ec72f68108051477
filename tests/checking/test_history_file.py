"""History files: what is read is what was written, and everything wrong has a place."""

from __future__ import annotations

import copy
import json
from decimal import Decimal
from fractions import Fraction

import pytest

from steadyview.algebra import Bag
from steadyview.checking import History, Relation, Transaction, judge
from steadyview.errors import ConfigError, DefiniteError, ViewRefused
from tests.checking.small_histories import SmallHistory
from tests.checking.test_views import history_of
from tests.worlds import seeded_world

GOOD = {
    "view": "SELECT r1.a, r2.c FROM r1 JOIN r2 ON r1.b = r2.b",
    "relations": {
        "r1": {"source": "x", "columns": ["a", "b"], "rows": [[1, 2]]},
        "r2": {"source": "y", "columns": ["b", "c"], "rows": []},
    },
    "transactions": [
        {"id": "t1", "changes": [{"relation": "r2", "row": [2, 3], "count": 1}]},
        {"id": "t2", "changes": [{"relation": "r1", "row": [1, 2], "count": -1}]},
    ],
    "states": [[], [{"row": [1, 3], "count": 1}], []],
}


def test_a_file_is_read_as_it_is_documented():
    history = History.from_json(json.dumps(GOOD))
    assert history == History(
        GOOD["view"],
        {
            "r1": Relation("x", ("a", "b"), Bag.of([(1, 2)])),
            "r2": Relation("y", ("b", "c"), Bag()),
        },
        [
            Transaction("t1", {"r2": Bag.of([(2, 3)])}),
            Transaction("t2", {"r1": Bag([((1, 2), -1)])}),
        ],
        [Bag(), Bag.of([(1, 3)]), Bag()],
    )
    assert judge(history).level == "complete"


def test_what_is_written_is_read_back():
    for seed in range(200):
        history = SmallHistory(seed).history
        read = History.from_json(history.to_json())
        assert read.states == history.states
        assert read.relations == history.relations
        assert judge(read).to_dict() == judge(history).to_dict()


def test_histories_with_dotted_names_are_read_back():
    for seed in range(50):
        history = history_of(seeded_world(seed))
        assert judge(History.from_json(history.to_json())).level == "complete"


def test_values_keep_their_kind_and_all_their_digits():
    row = (Decimal("0.10"), "é\n", True, None, 10**30, Decimal("1E+3"), Decimal("-1E-7"))
    columns = tuple("abcdefg")
    history = History(
        "SELECT * FROM r", {"r": Relation("x", columns, Bag.of([row]))}, [], [Bag.of([row])]
    )
    read = History.from_json(history.to_json())
    assert read == history
    (((number, _, truth, *_), _),) = read.states[0]
    assert (type(number), truth) == (Decimal, True)


def test_an_exact_average_is_written_as_the_double_that_it_is_compared_as():
    relation = Relation("x", ("a",), Bag.of([(1,), (0,), (0,)]))
    states = [Bag.of([(Fraction(1, 3),)])]
    history = History("SELECT AVG(a) AS m FROM r", {"r": relation}, [], states)
    assert "[0.3333333333333333]" in history.to_json()
    assert judge(History.from_json(history.to_json())).level == "complete"


@pytest.mark.parametrize("value", [float("inf"), b"x", Decimal("NaN"), {1}])
def test_a_value_that_has_no_json_is_not_written(value):
    relation = Relation("x", ("a",), Bag())
    history = History("SELECT a FROM r", {"r": relation}, [], [Bag([(("x",), 1)])])
    history = History(history.view, history.relations, [], [[((value,), 1)]])
    with pytest.raises(DefiniteError, match="a history cannot hold"):
        history.to_json()


def test_counts_of_one_row_are_added_up_within_a_transaction():
    changed = copy.deepcopy(GOOD)
    changes = changed["transactions"][1]["changes"]
    changes[:0] = [{"relation": "r1", "row": [1, 2], "count": n} for n in (-1, 1)]
    changes += [{"relation": "r2", "row": [7, 7], "count": n} for n in (1, -1)]
    read = History.from_json(json.dumps(changed))
    assert read == History.from_json(json.dumps(GOOD))


def test_keys_that_are_not_ours_are_left_alone():
    assert History.from_json(json.dumps({**GOOD, "seed": 7, "algorithm": "strobe"}))


def changed(path, value):
    """GOOD with the value at this path; deleted where the value is `...`."""
    document = copy.deepcopy(GOOD)
    *steps, last = path
    inner = document
    for step in steps:
        inner = inner[step]
    if value is ...:
        del inner[last]
    else:
        inner[last] = value
    return document


T0, T1 = ("transactions", 0), ("transactions", 1)
CHANGE = (*T0, "changes", 0)

MALFORMED = [
    # the whole
    ((), [], "as a whole", "expected an object, found []"),
    (("view",), ..., "as a whole", 'the key "view" is missing'),
    (("relations",), ..., "as a whole", 'the key "relations" is missing'),
    (("transactions",), ..., "as a whole", 'the key "transactions" is missing'),
    (("states",), ..., "as a whole", 'the key "states" is missing'),
    (("view",), 7, "at view", "expected a text, found 7"),
    (("relations",), [], "at relations", "expected an object, found []"),
    (("transactions",), {}, "at transactions", "expected a list, found {}"),
    (("states",), None, "at states", "expected a list, found null"),
    # relations
    (("relations", "r1"), 1, "at relations.r1", "expected an object, found 1"),
    (("relations", "r1", "source"), ..., "at relations.r1", 'the key "source" is missing'),
    (("relations", "r1", "source"), "", "at relations.r1.source", "expected a name"),
    (("relations", "r1", "source"), True, "at relations.r1.source", "found true"),
    (("relations", "r1", "columns"), ..., "at relations.r1", 'the key "columns" is missing'),
    (("relations", "r1", "columns"), [], "at relations.r1.columns", "expected columns"),
    (("relations", "r1", "columns"), ["a", "a"], "at relations.r1.columns", "a name of its own"),
    (("relations", "r1", "columns", 1), 2, "at relations.r1.columns[1]", "expected a text"),
    (("relations", "r1", "rows"), ..., "at relations.r1", 'the key "rows" is missing'),
    (("relations", "r1", "rows", 0), 1, "at relations.r1.rows[0]", "expected a list, found 1"),
    (
        ("relations", "r1", "rows", 0),
        [1],
        "at relations.r1.rows[0]",
        "expected 2 values (a, b), found 1",
    ),
    (
        ("relations", "r1", "rows", 0, 1),
        [2],
        "at relations.r1.rows[0][1]",
        "expected a value, found [2]",
    ),
    (("relations", "a b.c"), 1, 'at relations["a b.c"]', "expected an object"),
    (
        ("relations", ""),
        {"source": "x", "columns": ["a"], "rows": []},
        'at relations[""]',
        "a relation must have a name",
    ),
    # transactions
    ((*T1,), "t2", "at transactions[1]", "expected an object"),
    ((*T1, "id"), ..., "at transactions[1]", 'the key "id" is missing'),
    ((*T1, "id"), 2, "at transactions[1].id", "expected a text, found 2"),
    ((*T1, "id"), "", "at transactions[1].id", "expected a name"),
    ((*T1, "id"), "t1", "at transactions[1].id", 'there is already a transaction "t1"'),
    ((*T1, "changes"), ..., "at transactions[1]", 'the key "changes" is missing'),
    ((*T1, "changes"), "no", "at transactions[1].changes", "expected a list"),
    ((*CHANGE, "relation"), ..., "at transactions[0].changes[0]", '"relation" is missing'),
    (
        (*CHANGE, "relation"),
        "r3",
        "at transactions[0].changes[0].relation",
        'there is no relation "r3"',
    ),
    ((*CHANGE, "relation"), 3, "at transactions[0].changes[0].relation", "expected a text"),
    ((*CHANGE, "row"), ..., "at transactions[0].changes[0]", 'the key "row" is missing'),
    (
        (*CHANGE, "row"),
        [1, 2, 3],
        "at transactions[0].changes[0].row",
        "expected 2 values (b, c), found 3",
    ),
    ((*CHANGE, "row"), {"b": 1}, "at transactions[0].changes[0].row", "expected a list"),
    ((*CHANGE, "count"), ..., "at transactions[0].changes[0]", 'the key "count" is missing'),
    ((*CHANGE, "count"), 0, "at transactions[0].changes[0].count", "a count of 0"),
    ((*CHANGE, "count"), True, "at transactions[0].changes[0].count", "found true"),
    ((*CHANGE, "count"), 1.0, "at transactions[0].changes[0].count", "expected a whole number"),
    (
        (*CHANGE, "count"),
        -1,
        "at transactions[0].changes[0]",
        '"r2" loses [2, 3] 1 times and holds it 0 times',
    ),
    (
        (*T1, "changes", 0, "count"),
        -2,
        "at transactions[1].changes[0]",
        '"r1" loses [1, 2] 2 times and holds it 1 times',
    ),
    # states
    (("states",), [], "at states", "expected at least the initial state"),
    (("states", 1), {}, "at states[1]", "expected a list"),
    (("states", 1, 0), [1, 3], "at states[1][0]", "expected an object"),
    (("states", 1, 0, "row"), ..., "at states[1][0]", 'the key "row" is missing'),
    (("states", 1, 0, "row"), [1], "at states[1][0].row", "expected 2 values (a, c), found 1"),
    (("states", 1, 0, "count"), ..., "at states[1][0]", 'the key "count" is missing'),
    (("states", 1, 0, "count"), 0, "at states[1][0].count", "a count of 0 says nothing"),
    (("states", 1, 0, "count"), "1", "at states[1][0].count", 'found "1"'),
    # kinds
    (
        (*CHANGE, "row"),
        [2, True],
        "at states[1][0].row[1]",
        "expected truths as at transactions[0].changes[0].row[1], found 3",
    ),
    (("states", 1, 0, "row"), ["1", 3], "at states[1][0].row[0]", "expected numbers as at rel"),
    (
        (*T1, "changes", 0, "row"),
        [True, 2],
        "at transactions[1].changes[0].row[0]",
        "expected numbers as at relations.r1.rows[0][0], found true",
    ),
]


@pytest.mark.parametrize(("path", "value", "place", "why"), MALFORMED, ids=lambda v: str(v)[:40])
def test_a_malformed_file_is_an_error_with_its_place(path, value, place, why):
    document = changed(path, value) if path else value
    with pytest.raises(ConfigError) as error:
        History.from_json(json.dumps(document))
    assert error.value.message == f"the history is malformed {place}"
    assert why in error.value.detail


def test_columns_of_different_kinds_cannot_be_compared():
    with pytest.raises(ConfigError, match="compares numbers at relations.r1.rows") as error:
        History.from_json(json.dumps(changed((*CHANGE, "row"), ["2", 3])))
    assert "with texts at transactions[0].changes[0].row[0]" in error.value.message


@pytest.mark.parametrize(
    ("text", "message", "detail"),
    [
        ("", "the history is no JSON at line 1, column 1", "Expecting value"),
        ('{"view":\n  oops}', "the history is no JSON at line 2, column 3", "Expecting value"),
        ('{"view": 1', "the history is no JSON at line 1, column 11", "Expecting ','"),
        ('{"view": NaN}', "the history is no JSON at line 1, column 10", "NaN is no number"),
        (
            f"[{'[' * 150}{']' * 150}, NaN]",
            "the history is no JSON at line 1, column 304",
            "NaN is no number",
        ),
        ('["NaN",\n -Infinity]', "the history is no JSON at line 2, column 2", "-Infinity is no"),
        (
            '{"a": {"b": 1,\n  "b": 2}}',
            "the history is no JSON at line 2, column 3",
            'the key "b" is given twice',
        ),
        (
            '[{"b": {"b": ":", "c": "b"}}, {"b\\"": [], "\\u0062\\"": 2}]',
            "the history is no JSON at line 1, column 43",
            'the key "b"" is given twice',
        ),
        ("[" * 100_000, "the history is no JSON at line 1, column 101", "too deep"),
        ("[1,\n" + "1" * 5_000 + "]", "the history is no JSON at line 2, column 1", "111..."),
        ("[1e99999999999999999999]", "the history is no JSON at line 1, column 2", "is no number"),
    ],
)
def test_a_file_that_is_no_json_is_an_error_with_line_and_column(text, message, detail):
    with pytest.raises(ConfigError) as error:
        History.from_json(text)
    assert error.value.message == message
    assert detail in error.value.detail


@pytest.mark.parametrize(
    ("view", "code"),
    [("SELECT", "SYNTAX_ERROR"), ("SELECT a FROM r9", "UNKNOWN_TABLE"), ("", "NOT_A_VIEW")],
)
def test_a_view_that_is_refused_says_where_in_its_text(view, code):
    with pytest.raises(ViewRefused) as refused:
        History.from_json(json.dumps({**GOOD, "view": view}))
    assert refused.value.code == code
    assert refused.value.line == 1
