"""Queries over tables of sources, answered from views where that is provably the same.

Pure: a query's text, a view's text and columns in; a query over the view out, or the reason why
not. Every rule was settled on random histories, together with the readings of it that are wrong
(`tests/views/routed` has fixtures of both).

    FROM       the same tables, up to one whole mapping of aliases; none more, none less
    WHERE      the view's conjuncts all among the query's; the rest is asked of the view's columns
    rows       a view of rows answers any query over such rows
    groups     a view of groups answers the same groups, as they are
    rollup     and coarser groups, by COUNT, SUM, MIN, MAX and AVG of its own aggregates
    text       any view answers its own text

What is equal is equal as written, but for names, brackets, the order of conjuncts and of the sides
of `=`. No condition is ever derived from another one.
"""

from steadyview.views.routing.offers import OfferedView
from steadyview.views.routing.question import RoutingQuestion, routing_question
from steadyview.views.routing.route import Routed, Unrouted, routed

__all__ = [
    "OfferedView",
    "Routed",
    "RoutingQuestion",
    "Unrouted",
    "routed",
    "routing_question",
]
