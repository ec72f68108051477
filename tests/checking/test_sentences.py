"""Each way in which a level fails, as data and as a sentence; the examples of the paper first."""

from __future__ import annotations

import pytest

from steadyview.algebra import Bag
from steadyview.checking import History, Relation, Transaction, judge
from steadyview.errors import DefiniteError

JOIN = "SELECT r1.a, r1.b, r2.c FROM r1 JOIN r2 ON r1.b = r2.b"


def insert(relation, *rows):
    return {relation: Bag.of(rows)}


def delete(relation, *rows):
    return {relation: -Bag.of(rows)}


def history(states, transactions, r1=(), r2=(), view=JOIN, sources=("x", "y")):
    return History(
        view,
        {
            "r1": Relation(sources[0], ("a", "b"), Bag.of(r1)),
            "r2": Relation(sources[1], ("b", "c"), Bag.of(r2)),
        },
        [Transaction(f"t{i}", changes) for i, changes in enumerate(transactions, 1)],
        [Bag.of(state) for state in states],
    )


def verdict_of(*arguments, **options):
    return judge(history(*arguments, **options))


def paper(view, states, transactions, **rows):
    columns = {"r1": ("A", "B"), "r2": ("B", "C"), "r3": ("C", "D")}
    sources = dict(zip(columns, "xyz", strict=True))
    relations = {
        name: Relation(sources[name], columns[name], Bag.of(rows.get(name, ())))
        for name in columns
        if name in view
    }
    changes = [Transaction(f"T{i}", change) for i, change in enumerate(transactions, 1)]
    return judge(History(view, relations, changes, [Bag.of(state) for state in states]))


THREE = (
    "SELECT r1.A, r1.B, r2.C, r3.D FROM r1 JOIN r2 ON r1.B = r2.B JOIN r3 ON r2.C = r3.C"
)
EXAMPLE_1 = [insert("r2", (2, 3)), delete("r1", (1, 2))]


def test_paper_example_1_the_conventional_algorithm_keeps_a_row_for_ever():
    verdict = paper(THREE, [[], [(1, 2, 3, 4)]], EXAMPLE_1, r1=[(1, 2)], r3=[(3, 4)])
    assert verdict.level == "none"
    assert verdict.sentence == (
        "state 1, the last, is not the view over the final rows: it shows [1, 2, 3, 4] too many"
    )


def test_paper_example_3_strobe_may_be_called_complete_since_order_between_sources_is_free():
    assert paper(THREE, [[]], EXAMPLE_1, r1=[(1, 2)], r3=[(3, 4)]).level == "complete"


def test_paper_example_6_c_strobe_shows_the_row_that_came_and_went():
    states = [[], [(1, 2, 3, 4)], []]
    assert paper(THREE, states, EXAMPLE_1, r1=[(1, 2)], r3=[(3, 4)]).level == "complete"


def test_paper_example_4_strobe_tears_a_transaction_t_strobe_does_not():
    view = "SELECT r1.A, r1.B FROM r1"
    replaced = [{"r1": Bag([((1, 2), -1), ((3, 4), 1)])}]
    strobe = paper(view, [[(1, 2)], [], [(3, 4)]], replaced, r1=[(1, 2)])
    assert strobe.level == "convergent"
    assert strobe.sentence == (
        "the last state is the view over the final rows; "
        "state 1 shows a part of T1 of x only: not its change of r1 [3, 4]"
    )
    assert paper(view, [[(1, 2)], [(3, 4)]], replaced, r1=[(1, 2)]).level == "complete"


def test_paper_example_5_a_global_transaction_half_seen_is_weak():
    view = "SELECT r1.A, r2.B AS b, r2.C FROM r1 JOIN r2 ON r1.B = r2.B"
    both = [{"r1": Bag.of([(2, 3)]), "r2": Bag.of([(3, 5)])}]
    rows = {"r1": [(1, 3)]}
    t_strobe = paper(view, [[], [(1, 3, 5)], [(1, 3, 5), (2, 3, 5)]], both, **rows)
    assert t_strobe.level == "weak"
    assert t_strobe.sentence == (
        "every state is the view over some vector of source prefixes; "
        "state 1 shows T1 at y but not at x"
    )
    assert paper(view, [[], [(1, 3, 5), (2, 3, 5)]], both, **rows).level == "complete"


def test_convergent_fails_where_rows_are_missing_extra_or_too_often():
    final = [insert("r1", (1, 2), (1, 2), (5, 2))]
    verdict = verdict_of([[], [(1, 2, 3), (9, 2, 3)]], final, r2=[(2, 3)])
    assert verdict.level == "none"
    assert verdict.witness["breaks"] == {
        "level": "convergent",
        "kind": "different",
        "state": 1,
        "missing": [{"row": [1, 2, 3], "count": 1}, {"row": [5, 2, 3], "count": 1}],
        "extra": [{"row": [9, 2, 3], "count": 1}],
    }
    assert verdict.sentence == (
        "state 1, the last, is not the view over the final rows: "
        "it lacks [1, 2, 3] and [5, 2, 3] and it shows [9, 2, 3] too many"
    )


def test_long_lists_of_rows_are_cut():
    verdict = verdict_of([[]], [insert("r1", *((n, 2) for n in range(9)))], r2=[(2, 3)])
    assert verdict.sentence.endswith("it lacks [0, 2, 3], [1, 2, 3], [2, 2, 3] and 6 more")
    assert len(verdict.witness["breaks"]["missing"]) == 9


def test_weak_fails_where_a_later_transaction_is_seen_before_an_earlier_one():
    commits = [insert("r1", (1, 2)), insert("r1", (5, 2))]
    states = [[], [(5, 2, 3)], [(1, 2, 3), (5, 2, 3)]]
    verdict = verdict_of(states, commits, r2=[(2, 3)])
    assert verdict.level == "convergent"
    assert verdict.sentence == (
        "the last state is the view over the final rows; "
        "state 1 shows t2 of x but not t1 of x, which came before it"
    )
    breaks = verdict.witness["breaks"]
    assert (breaks["kind"], breaks["shows"], breaks["lacks"]) == ("skipped", "t2", "t1")


def test_weak_fails_where_a_state_is_nowhere():
    verdict = verdict_of([[], [(7, 7, 7)], []], [insert("r2", (1, 1))])
    assert verdict.level == "convergent"
    assert verdict.sentence == (
        "the last state is the view over the final rows; state 1 is the view over no vector of "
        "source prefixes: compared with the view after 0 commits of x and 0 commits of y "
        "it shows [7, 7, 7] too many"
    )


def test_strong_fails_where_the_first_state_is_not_the_initial_one():
    verdict = verdict_of([[(1, 2, 3)]], [insert("r1", (1, 2))], r2=[(2, 3)])
    assert verdict.level == "weak"
    assert verdict.sentence == (
        "every state is the view over some vector of source prefixes; "
        "state 0, the first, is not the view over the initial rows: it shows [1, 2, 3] too many"
    )


def test_strong_fails_where_a_state_goes_back():
    commits = [insert("r1", (1, 2)), insert("r1", (5, 2))]
    states = [[], [(1, 2, 3)], [(1, 2, 3), (5, 2, 3)], [(1, 2, 3)], [(1, 2, 3), (5, 2, 3)]]
    verdict = verdict_of(states, commits, r2=[(2, 3)])
    assert verdict.level == "weak"
    assert verdict.sentence == (
        "every state is the view over some vector of source prefixes; "
        "state 3 does not show t2 of x, which state 2 before it shows"
    )
    assert verdict.witness["breaks"]["vector"] == {"x": 1, "y": 0}
    assert verdict.witness["breaks"]["vector_before"] == {"x": 2, "y": 0}


def test_strong_fails_against_the_order_that_a_global_transaction_forces():
    commits = [insert("r1", (1, 2)), {**insert("r1", (0, 0)), **insert("r2", (0, 0))}]
    commits.append(insert("r2", (2, 3)))
    states = [[], [(0, 0, 0)], [(0, 0, 0), (8, 2, 3)], [(0, 0, 0), (8, 2, 3), (1, 2, 3)]]
    # t1 of x comes before the global t2, and that before t3 of y: t3 without t1 cannot be seen.
    verdict = verdict_of(states, commits, r1=[(8, 2)])
    assert verdict.level == "convergent"
    free = [commits[0], commits[2]]
    assert verdict_of([[], [(8, 2, 3)], states[3][1:]], free, r1=[(8, 2)]).level == "complete"


def test_complete_fails_where_a_state_takes_in_two_transactions():
    commits = [insert("r1", (1, 2)), insert("r1", (5, 2))]
    verdict = verdict_of([[], [(1, 2, 3), (5, 2, 3)]], commits, r2=[(2, 3)])
    assert verdict.level == "strong"
    assert verdict.sentence == (
        "the states follow one chain of source states; state 1 takes in t1 and t2 since state 0: "
        "after t1 alone a reader would have seen [1, 2, 3] come"
    )
    assert verdict.witness["breaks"]["transactions"] == ["t1", "t2"]
    assert verdict.witness["chain"] == [
        {"state": 0, "vector": {"x": 0, "y": 0}},
        {"state": 1, "vector": {"x": 2, "y": 0}},
    ]


def test_complete_fails_where_rows_came_and_went_after_the_last_state():
    commits = [insert("r1", (1, 2)), delete("r1", (1, 2))]
    verdict = verdict_of([[], []], commits, r2=[(2, 3)])
    assert verdict.level == "strong"
    assert verdict.sentence == (
        "the states follow one chain of source states; after state 0, the last, come t1 and t2: "
        "after t1 alone a reader would have seen [1, 2, 3] come"
    )


def test_what_needs_no_state_of_its_own():
    nothing = [insert("r1", (9, 9)), {}, {"r1": Bag()}, insert("r2", (2, 3))]
    assert verdict_of([[], [], [(1, 2, 3)], [(1, 2, 3)]], nothing, r1=[(1, 2)]).level == "complete"


def test_a_history_without_any_state_cannot_be_judged():
    with pytest.raises(DefiniteError, match="at least the view's initial state"):
        verdict_of([], [])


def test_a_state_may_owe_rows_and_is_then_the_view_over_no_vector():
    owing = [Bag(), Bag([((1, 2, 3), -1)]), Bag()]
    recorded = history([], [insert("r1", (1, 2))])
    verdict = judge(History(JOIN, recorded.relations, recorded.transactions, owing))
    assert verdict.level == "convergent"
    assert verdict.sentence.endswith("it lacks [1, 2, 3]")


def test_equal_rows_of_a_state_are_summed():
    counted = history([], [], r1=[(1, 2), (1, 2)], r2=[(2, 3)])
    twice = History(counted.view, counted.relations, (), [Bag([((1, 2, 3), 1), ((1, 2, 3), 1)])])
    assert judge(twice).level == "complete"


def test_a_complete_history_says_so_and_has_nothing_to_break():
    verdict = verdict_of([[]], [])
    assert verdict.to_dict() == {
        "level": "complete",
        "levels": dict.fromkeys(("convergent", "weak", "strong", "complete"), "holds"),
        "witness": {
            "chain": [{"state": 0, "vector": {"x": 0, "y": 0}}],
            "order": [],
            "breaks": None,
        },
        "sentence": "the states are those after each transaction, one by one, and nothing else",
    }
