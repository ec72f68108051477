"""Which updates conflict with a query on its way: those that an algorithm has to make up for.

    before it is evaluated    an update of a relation it asks for, by a row that joins what it knows
    while its answer is       an update elsewhere by a row that the answer holds, or that joins it
    under way                 where it has to be continued

"Joins" is said of the conditions that can be told by then, so that some conflicts are only possible
ones. What is read whole conflicts with every update of it; whoever reads one source after another,
with every update elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steadyview.algebra import Bag, Row
from steadyview.maintenance.bag_view_algebra import Handle, JoinedRows
from steadyview.maintenance.events import Ask, Read
from steadyview.simulation.blueprints import Site
from steadyview.simulation.sources import Freeze, Query, Report


def hits_query(site: Site, query: Query, report: Report) -> bool:
    """Whether the source may answer otherwise after this update."""
    if isinstance(query, Freeze):
        return True
    if isinstance(query, Ask):
        return any(
            _joins(site, part.known, position, row)
            for part in query.parts
            for position, rows in part.steps
            if rows is None
            for row in _rows_at(site, position, report)
        )
    if isinstance(query, Read):
        return any(_rows_at(site, position, report) for position in query.positions)
    return any(change.relation == query.relation for change in report.changes)


def hits_answer(site: Site, answer: Sequence[Any], report: Report) -> bool:
    """Whether this update of another source concerns what an answer holds or what it lacks."""
    if not answer or not isinstance(answer[0], JoinedRows):
        return True
    return any(
        any(bound[position] == row for bound, _ in part.rows)
        if position in part.bound
        else _joins(site, part, position, row)
        for part in answer
        for position in site.positions.all
        for row in _rows_at(site, position, report)
    )


def _rows_at(site: Site, position: int, report: Report) -> list[Row]:
    relation = site.blueprint.uses[position]
    return [change.row for change in report.changes if change.relation == relation]


def _joins(site: Site, known: Handle, position: int, row: Row) -> bool:
    return not site.algebra.is_empty(site.algebra.join(known, position, Bag([(row, 1)])))
