"""The view over source states as `checking` evaluates it, against SQLite, and what it refuses."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest

from steadyview.algebra import Bag
from steadyview.checking import History, Relation, Transaction, judge
from steadyview.errors import DefiniteError, ViewRefused
from tests.recomputation import recomputed
from tests.worlds import World, seeded_world


def history_of(world: World) -> History:
    """The world with every state that SQLite shows."""
    return History(
        world.view.sql,
        {
            str(schema.name): Relation(
                schema.name.source,
                tuple(column.name for column in schema.columns),
                world.initial[schema.name],
            )
            for schema in world.schemas
        },
        [
            Transaction(
                f"t{i}",
                {
                    name: Bag((c.row, c.count) for c in t.changes if str(c.relation) == name)
                    for name in {str(c.relation) for c in t.changes}
                },
            )
            for i, t in enumerate(world.transactions)
        ],
        recomputed(world, world.view.sql),
    )


@pytest.mark.parametrize("part", range(4))
def test_oracle_a_history_of_sqlites_states_is_complete(part):
    for seed in range(part * 60, part * 60 + 60):
        history = history_of(seeded_world(seed))
        verdict = judge(history)
        assert verdict.level == "complete", (seed, history.view, verdict.sentence)


def judged(view, relations, states, transactions=()):
    relations = {
        name: Relation("x", columns, Bag.of(rows)) for name, (columns, rows) in relations.items()
    }
    return judge(History(view, relations, transactions, [Bag.of(state) for state in states])).level


def test_names_may_be_bare_or_dotted_and_case_does_not_matter():
    rows = [(1, 2)]
    for name, view in (
        ("r", "SELECT a FROM r"),
        ("r", "SELECT R.A AS x FROM R"),
        ("sales.orders", "SELECT orders.a FROM sales.orders"),
        ("sales.public.orders", "SELECT o.a FROM sales.orders o"),
        ("sales.public.orders", "CREATE MATERIALIZED VIEW v AS SELECT a FROM sales.public.orders"),
    ):
        assert judged(view, {name: (("a", "b"), rows)}, [[(1,)]]) == "complete"


@pytest.mark.parametrize(
    ("view", "code"),
    [
        ("SELECT a FROM orders", "UNKNOWN_TABLE"),
        ("SELECT a FROM sales", "UNKNOWN_TABLE"),
        ("SELECT a FROM x.r", "UNKNOWN_TABLE"),
        ("SELECT c FROM r", "UNKNOWN_COLUMN"),
        ("SELECT FROM r", "SYNTAX_ERROR"),
        ("SELECT a FROM r UNION SELECT b FROM r", "ALGORITHM_SHAPE"),
        ("SELECT MAX(a) AS m FROM r", "ALGORITHM_SHAPE"),
    ],
)
def test_a_view_that_cannot_be_maintained_is_refused_with_its_code(view, code):
    relations = {"r": (("a", "b"), []), "sales.orders": (("a", "b"), [])}
    with pytest.raises(ViewRefused) as refused:
        judged(view, relations, [[]])
    assert refused.value.code == code


@pytest.mark.parametrize(
    "view",
    [
        "SELECT upper(a) AS u FROM r",
        "SELECT a FROM r WHERE a LIKE 'x%'",
        "SELECT p.a FROM r p JOIN r q ON p.a > length(q.b)",
        "SELECT length(a) AS l, COUNT(*) AS n FROM r GROUP BY length(a)",
        "SELECT SUM(CAST(a AS INT)) AS s FROM r",
    ],
)
def test_a_view_beyond_memory_is_an_error_that_says_so(view):
    with pytest.raises(DefiniteError, match="cannot interpret") as refused:
        judged(view, {"r": (("a", "b"), [])}, [[]])
    assert "docs/cli.md" in refused.value.hint


def test_a_calculated_truth_is_not_the_number_one():
    relations = {"r": (("a",), [(1,), (2,)])}
    view = "SELECT a = 1 AS one FROM r"
    assert judged(view, relations, [[(True,), (False,)]]) == "complete"
    assert judged(view, relations, [[(1,), (0,)]]) == "none"
    grouped = "SELECT a = 1 AS one, COUNT(*) AS n FROM r GROUP BY a = 1"
    assert judged(grouped, relations, [[(True, 1), (False, 1)]]) == "complete"
    assert judged(grouped, relations, [[(1, 1), (0, 1)]]) == "none"


def test_an_average_of_whole_numbers_is_exact_or_the_nearest_double():
    relations = {"r": (("a",), [(1,), (0,), (None,), (1,)])}
    view = "SELECT AVG(a) AS m FROM r"
    for average in (Fraction(2, 3), 2 / 3, Decimal("0.6666666666666666")):
        assert judged(view, relations, [[(average,)]]) == "complete"
    assert judged(view, relations, [[(Decimal("0.667"),)]]) == "none"
    for other in (10**400, Decimal("1E+400"), "0.6666666666666666", True, None):
        assert judged(view, relations, [[(other,)]]) == "none"
    assert judged(view, {"r": (("a",), [(None,)])}, [[(None,)]]) == "complete"


def test_an_average_of_decimals_may_be_rounded_half_up_to_four_digits_or_more():
    relations = {"r": (("a",), [(Decimal("-12.50"),), (Decimal("0.00"),), (Decimal("0.00"),)])}
    view = "SELECT AVG(a) AS m FROM r"
    for average in ("-4.166667", "-4.1667", "-4.166666666666667", "-4.1666666666666667"):
        assert judged(view, relations, [[(Decimal(average),)]]) == "complete"
    for average in ("-4.166666", "-4.17", "-4", "-4.1668"):
        assert judged(view, relations, [[(Decimal(average),)]]) == "none"


def test_averages_can_be_calculated_with():
    relations = {"r": (("a",), [(1,), (0,), (0,)])}
    view = "SELECT AVG(a) * 3 + 1 AS m, AVG(a) > 0 AS positive FROM r"
    assert judged(view, relations, [[(Decimal("1.9999999999999999"), True)]]) == "complete"
    assert judged(view, relations, [[(Decimal("1.9999"), True)]]) == "none"


def test_a_wrong_average_is_told_in_digits():
    view = "SELECT COUNT(*) AS n, AVG(a) AS m FROM r"
    relation = Relation("x", ("a",), Bag.of([(1,), (0,), (0,)]))
    verdict = judge(History(view, {"r": relation}, [], [Bag.of([(3, Decimal("0.4"))])]))
    assert "it lacks [3, 0.33333" in verdict.sentence
    assert verdict.sentence.endswith("and it shows [3, 0.4] too many")


def test_sums_of_decimals_are_exact():
    large = Decimal("99999999999999999999999999999999.000001")
    relations = {"r": (("a",), [(large,), (large,), (Decimal("0.5"),)])}
    assert judged("SELECT SUM(a) AS s FROM r", relations, [[(2 * 10**32,)]]) == "none"
    exact = Decimal("199999999999999999999999999999998.500002")
    assert judged("SELECT SUM(a) AS s FROM r", relations, [[(exact,)]]) == "complete"


def test_a_relation_that_loses_a_row_it_does_not_hold_is_an_error():
    lost = [Transaction("t", {"r": Bag([((1,), -1)])})]
    with pytest.raises(DefiniteError, match='"r" loses a row that it does not hold'):
        judged("SELECT a FROM r", {"r": (("a",), [])}, [[]], lost)
