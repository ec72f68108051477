"""A view of rows answers any query over these rows.

    SELECT f(rows) FROM tables WHERE v AND rest   =   SELECT f(columns) FROM view WHERE rest

The view is the very bag of the joined rows. So whatever is asked of them can be asked of the view,
if it speaks of columns that the view shows.
"""

from __future__ import annotations

from sqlglot import exp

from steadyview.views.dialect import written
from steadyview.views.flat import FlatQuery
from steadyview.views.routing.body import Body, every
from steadyview.views.routing.covering import Covering
from steadyview.views.routing.matching import Matched
from steadyview.views.routing.reasons import CannotAnswer


def over_rows(query: FlatQuery, matched: Matched, shows: Covering) -> Body:
    """The query over the view's rows."""

    def over(value: exp.Expression) -> exp.Expression:
        found = shows.over(value)
        if found is None:
            raise CannotAnswer("columns", f"it does not show what is asked for: {written(value)}")
        return found

    return Body(
        outputs=every(over, query.outputs),
        where=every(over, matched.rest),
        keys=every(over, query.keys),
        having=every(over, query.having),
        grouped=query.grouped,
        over=over,
    )
