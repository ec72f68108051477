"""A view of groups answers a query for the same groups, as they are.

    GROUP BY the same keys, rest over keys that are shown    ->  a row of the view is a group
    HAVING v in the view    no rest, and v among the conjuncts of the query's HAVING
    a group of all rows     no rest: it is there even where the rest lets nothing through

What the view shows, aggregates and whole expressions over them, stands for itself.
"""

from __future__ import annotations

from sqlglot import exp

from steadyview.views.dialect import written
from steadyview.views.flat import FlatQuery
from steadyview.views.routing.body import Body, every
from steadyview.views.routing.covering import Covering
from steadyview.views.routing.matching import Matched, text
from steadyview.views.routing.reasons import CannotAnswer
from steadyview.views.trees import canonical


def has_same_groups(query: FlatQuery, view: FlatQuery) -> bool:
    """Whether both group by the same."""
    return {canonical(k) for k in query.keys} == {canonical(k) for k in view.keys}


def same_groups(query: FlatQuery, matched: Matched, keys: Covering, shows: Covering) -> Body:
    """The view's rows for the query's groups; `keys`: the grouping columns that it shows."""
    view = matched.view
    own = {text(condition) for condition in view.having}
    if not own <= {text(condition) for condition in query.having}:
        raise CannotAnswer("having", "it leaves out groups that the query asks for (HAVING)")
    if matched.rest and (view.having or not view.keys):
        what = "has HAVING" if view.having else "is one group of all rows"
        raise CannotAnswer("having", f"it {what}, and the query has a condition more")

    def over(value: exp.Expression) -> exp.Expression:
        found = shows.row_value(value)
        if found is None:
            raise CannotAnswer("columns", f"it does not show what is asked for: {written(value)}")
        return found

    asked = tuple(c for c in query.having if text(c) not in own)
    return Body(every(over, query.outputs), over, (*rest_over(matched, keys), *every(over, asked)))


def rest_over(matched: Matched, keys: Covering) -> tuple[exp.Expression, ...]:
    """The query's further conditions, asked of grouping columns; no other column will do."""

    def over(condition: exp.Expression) -> exp.Expression:
        found = keys.row_value(condition)
        if found is None:
            raise CannotAnswer(
                "rest", f"it does not show the grouping columns of: {written(condition)}"
            )
        return found

    return every(over, matched.rest)
