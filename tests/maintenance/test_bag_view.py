"""What a view shows, rolled from cn to cn, is what its SQL says at every cn."""

from __future__ import annotations

from fractions import Fraction

from steadyview.algebra import Bag, Row, Summary
from steadyview.maintenance.bag_algebra import Partial
from steadyview.maintenance.bag_view import rolled, summarized, visible
from steadyview.views.definition import Argument, Definition, Grouping, Output
from tests.maintenance.definitions import analyzed
from tests.maintenance.sweeping import chosen_case, summaries, swept_changes
from tests.recomputation import recomputed
from tests.worlds import Seeded

GLOBAL = Definition(
    "v",
    "",
    "complete",
    (),
    (),
    (),
    (Output("n", "_count"), Output("s", "_visible_sum_0"), Output("a", "_visible_avg_0")),
    Grouping((), (Argument("t0.c0", summed=True),)),
)


def _as_sqlite_shows(row: Row) -> Row:
    """SQLite's averages are floats."""
    return tuple(float(value) if isinstance(value, Fraction) else value for value in row)


def test_aggregate_views_show_at_every_cn_what_their_sql_says() -> None:
    shown = 0
    for seed in range(500):
        world, showings = chosen_case(Seeded(seed))
        if world.view.state is None:
            continue
        definition = analyzed(world)
        deltas = swept_changes(definition, world, showings)
        state = summaries(recomputed(world, world.view.state)[0], len(world.view.keys))
        for cn, truth in enumerate(recomputed(world, world.view.sql)):
            state = rolled(state, deltas.get(cn, {}))
            rows = visible(definition, state).map(_as_sqlite_shows)
            assert rows == truth, f"chosen_case(Seeded({seed})) at cn {cn}"
            shown += len(truth)
    assert shown > 100


def test_a_global_aggregate_without_rows_is_one_row() -> None:
    assert visible(GLOBAL, {}) == Bag.of([(0, None, None)])
    assert visible(
        GLOBAL, rolled({(): Summary(1, (1,), (5,))}, {(): Summary(-1, (-1,), (-5,))})
    ) == (Bag.of([(0, None, None)]))


def test_a_sum_over_nulls_only_is_null() -> None:
    assert visible(GLOBAL, {(): Summary(2, (0,), (0,))}) == Bag.of([(2, None, None)])


def test_a_group_without_rows_is_gone_and_null_keys_are_one_group() -> None:
    grouping = Grouping(("t0.c0",), ())
    change = Partial(Bag([((1, ((None, 1),)), 1), ((1, ((None, 2),)), 1), ((2, ((None, 1),)), -2)]))
    deltas = summarized(grouping, change)
    state = rolled({}, deltas[1])
    assert state == {(None,): Summary(2, (), ())}
    assert rolled(state, deltas[2]) == {}


def test_a_change_of_a_sum_that_leaves_all_counts_is_kept() -> None:
    grouping = Grouping((), (Argument("t0.c0", summed=True),))
    change = Partial(Bag([((1, ((7,),)), 1), ((1, ((5,),)), -1)]))
    assert summarized(grouping, change) == {1: {(): Summary(0, (0,), (2,))}}


def test_a_change_that_leaves_counts_and_sums_is_left_out() -> None:
    grouping = Grouping((), (Argument("t0.c0", summed=True),))
    change = Partial(Bag([((1, ((7, 1),)), 1), ((1, ((7, 2),)), -1)]))
    assert summarized(grouping, change) == {}
