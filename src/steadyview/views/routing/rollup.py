"""A view of groups answers a query for coarser groups, by its own aggregates.

    COUNT(*)         COALESCE(SUM(count), 0)         of nothing it is 0, and SUM is NULL
    COUNT(x)         the same of COUNT(x)            of a key: the counts where it is not NULL
    SUM(x)           SUM(sum)                        of a key: SUM(key * count)
    MIN(x), MAX(x)   MIN(min), MAX(max)              of keys: MIN(keys), MAX(keys)
    AVG(x)           SUM(sum) / SUM(count of x)      never by COUNT(*), never AVG(avg)
    COUNT(DISTINCT)  of keys alone

Sums are exact whatever order they are made in, so only what is kept exactly is added: no DOUBLE.
HAVING is asked of the coarser groups. A view with HAVING of its own has lost rows of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from steadyview.plans.aggregates import average, exact
from steadyview.views.dialect import written
from steadyview.views.flat import FlatQuery, aggregate_call
from steadyview.views.fusing import expression
from steadyview.views.routing.body import Body, every
from steadyview.views.routing.covering import Covering
from steadyview.views.routing.matching import Matched
from steadyview.views.routing.reasons import CannotAnswer
from steadyview.views.routing.same_groups import rest_over
from steadyview.views.trees import canonical

_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")
_WHOLE = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_COUNTS = "DECIMAL(19,0)"
"""What holds every count, so that a product with one is exact."""
_MOST_DIGITS = 38
_MOST_WEIGHTED = _MOST_DIGITS - 19 - 1
"""Of more digits, Spark would cut some behind the point of a product with a count."""


def rollup(
    query: FlatQuery, matched: Matched, keys: Covering, shows: Covering, types: ColumnTypes
) -> Body:
    """The query's groups, made of the view's."""
    if matched.view.having:
        raise CannotAnswer("having", "it leaves out groups (HAVING), so none can be made of it")
    if not matched.view.keys and matched.rest:
        raise CannotAnswer("rest", "it is one group of all rows, and the query has a condition")
    grouping = {canonical(k): _key(k, keys) for k in query.keys}
    rolled = _Rolled(keys, shows, types)

    def over(value: exp.Expression) -> exp.Expression:
        return _replaced(value, grouping, rolled)

    return Body(
        outputs=every(over, query.outputs),
        over=over,
        where=rest_over(matched, keys),
        keys=tuple(grouping.values()),
        having=every(over, query.having),
        grouped=True,
    )


def _key(key: exp.Expression, keys: Covering) -> exp.Expression:
    found = keys.row_value(key)
    if found is None:
        raise CannotAnswer("groups", f"it does not show what is grouped by: {written(key)}")
    return found


def _replaced(
    value: exp.Expression, grouping: Mapping[str, exp.Expression], rolled: _Rolled
) -> exp.Expression:
    """Aggregates and keys replaced; everything else stays."""
    if aggregate_call(value):
        return rolled(value)
    if canonical(value) in grouping:
        return grouping[canonical(value)].copy()
    if isinstance(value, exp.Column):
        raise CannotAnswer("columns", f"it does not show what is asked for: {written(value)}")
    copy = value.copy()
    for child in list(copy.iter_expressions()):
        if not isinstance(child, (exp.Identifier, exp.DataType)):
            child.replace(_replaced(child, grouping, rolled))
    return copy


ColumnTypes = Callable[[str], str]
"""The type of a table's column, by its bound name."""


@dataclass(frozen=True)
class _Rolled:
    """Aggregates of coarser groups."""

    keys: Covering
    shows: Covering
    types: ColumnTypes

    def __call__(self, node: exp.Expression) -> exp.Expression:
        name, (argument,) = aggregate_call(node), node.expressions
        if isinstance(argument, exp.Star):
            return self._parsed(f"COALESCE(SUM({self._count(node)}), 0)")
        if name == "COUNT DISTINCT":
            (only,) = argument.expressions
            return self._parsed(f"COUNT(DISTINCT {self._keyed(node, only)})")
        makers: dict[str | None, Callable[[exp.Expression, exp.Expression], str]] = {
            "COUNT": lambda n, x: f"COALESCE(SUM({self._present(n, x)}), 0)",
            "SUM": self._sum,
            "AVG": self._average,
            "MIN": lambda n, x: self._extreme("MIN", n, x),
            "MAX": lambda n, x: self._extreme("MAX", n, x),
        }
        return self._parsed(makers[name](node, argument))

    def _parsed(self, sql: str) -> exp.Expression:
        return expression(sql)

    def _shown(self, node: exp.Expression) -> str | None:
        """The view's column with this aggregate of its own groups, as text."""
        name = self.shows.column(node)
        return None if name is None else written(self.shows.over(node) or node)

    def _keyed(self, node: exp.Expression, argument: exp.Expression) -> str:
        """The argument over grouping columns, as text."""
        found = self.keys.row_value(argument)
        if found is None:
            raise CannotAnswer("aggregates", f"it does not show {written(node)}")
        return written(found)

    def _count(self, node: exp.Expression) -> str:
        found = self._shown(expression("COUNT(*)"))
        if found is None:
            raise CannotAnswer("aggregates", f"it does not show COUNT(*), as {written(node)} needs")
        return found

    def _present(self, node: exp.Expression, argument: exp.Expression) -> str:
        """How many rows of a group of the view have a value."""
        shown = self._shown(exp.Anonymous(this="COUNT", expressions=[argument.copy()]))
        if shown is not None:
            return shown
        keyed = self._keyed(node, argument)
        return f"CASE WHEN ({keyed}) IS NULL THEN 0 ELSE {self._count(node)} END"

    def _extreme(self, name: str, node: exp.Expression, argument: exp.Expression) -> str:
        return f"{name}({self._shown(node) or self._keyed(node, argument)})"

    def _sum(self, node: exp.Expression, argument: exp.Expression) -> str:
        total, type_ = self._total(node, argument)
        return f"CAST({total} AS {type_})"

    def _average(self, node: exp.Expression, argument: exp.Expression) -> str:
        total, type_ = self._total(node, argument)
        count = f"SUM({self._present(node, argument)})"
        shown = average(total, count, self._average_type(node, argument, type_))
        return f"CASE WHEN {count} > 0 THEN {shown} END"

    def _total(self, node: exp.Expression, argument: exp.Expression) -> tuple[str, str]:
        """An exact sum over a coarser group, and the type of SUM."""
        summed = exp.Anonymous(this="SUM", expressions=[argument.copy()])
        name = self.shows.column(summed)
        if name is not None:
            type_ = self.shows.types[name]
            shown = written(self._over(summed))
            return f"SUM(CAST({shown} AS {self._exactly(node, type_)}))", type_
        key = self.keys.column(argument)
        if key is None:
            raise CannotAnswer("aggregates", f"it does not show {written(summed)}")
        return self._weighted(node, self.keys.types[key], self._keyed(node, argument))

    def _over(self, value: exp.Expression) -> exp.Expression:
        found = self.shows.over(value)
        assert found is not None
        return found

    def _weighted(self, node: exp.Expression, type_: str, key: str) -> tuple[str, str]:
        """The sum of a grouping column: every group's value as often as it has rows."""
        digits, scale = _digits(type_) or (_MOST_DIGITS, 0)
        whole = type_ in _WHOLE
        if not whole and digits > _MOST_WEIGHTED:
            raise CannotAnswer("aggregates", f"{written(node)} of {type_} cannot be weighted")
        count = f"CAST({self._count(node)} AS {_COUNTS})"
        total = f"SUM(CAST({key} AS DECIMAL({digits},{scale})) * {count})"
        return total, "BIGINT" if whole else f"DECIMAL({min(digits + 10, _MOST_DIGITS)},{scale})"

    def _exactly(self, node: exp.Expression, type_: str) -> str:
        kept = exact(type_)
        if kept is None:
            raise CannotAnswer("aggregates", f"{written(node)} of {type_} is not kept exactly")
        return kept

    def _average_type(self, node: exp.Expression, argument: exp.Expression, summed: str) -> str:
        """The type of AVG: DOUBLE of whole numbers; of DECIMAL four digits more on either side."""
        if summed == "BIGINT":
            return "DOUBLE"
        found = _digits(summed)
        of_column = self.types(argument.name) if isinstance(argument, exp.Column) else ""
        known = _digits(of_column) if isinstance(argument, exp.Column) else None
        if found is None or (known is None and found[0] >= _MOST_DIGITS):
            raise CannotAnswer("aggregates", f"the type of {written(node)} is not known")
        digits, scale = known or (found[0] - 10, found[1])
        return f"DECIMAL({min(digits + 4, _MOST_DIGITS)},{min(scale + 4, _MOST_DIGITS)})"


def _digits(type_: str) -> tuple[int, int] | None:
    """How many digits, and how many of them behind the point, a number's type has."""
    if type_ in _WHOLE:
        return (3, 5, 10, 19)[_WHOLE.index(type_)], 0
    found = _DECIMAL.fullmatch(type_)
    return (int(found[1]), int(found[2])) if found else None
