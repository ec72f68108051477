"""Expressions over a view's columns in the place of expressions over tables.

A view's column stands for the expression that the view shows in it. What contains that expression,
written the same, is computed of the column; what is left over tables cannot be computed.

FLOAT and DOUBLE: a view may show 0.0 for -0.0, which are equal. So such a column is used as a
whole, compared, or cast to a number without a sign of zero, and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from steadyview.views.flat import aggregate_call, is_aggregating
from steadyview.views.trees import canonical, put_keys, unbracketed

ALIAS = "_v"
"""What the view is called in the query over it: no lambda's variable can be called so."""
FLOATING = ("FLOAT", "DOUBLE")
_BOUND = re.compile(r"[a-z]\d+(_c\d+)?")
"""Names of columns in blocks; no lambda's variable can have one."""
_COMPARING = (
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ),
    *(exp.Between, exp.In, exp.Is),
)
_CHOOSING = frozenset({"COUNT", "MIN", "MAX"})
"""Aggregates that compute with no value."""
_UNSIGNED = re.compile(r"\s*(DECIMAL|NUMERIC|DEC|BIGINT|INT|INTEGER|SMALLINT|TINYINT)\b", re.I)


def view_column(name: str) -> exp.Column:
    """A column of the view."""
    quoted = exp.Identifier(this=name, quoted=True)
    return exp.Column(this=quoted, table=exp.Identifier(this=ALIAS, quoted=False))


@dataclass(frozen=True)
class Covering:
    """`shown`: which column of the view has which expression; `types` of its columns."""

    shown: Mapping[str, str]
    types: Mapping[str, str]

    @staticmethod
    def of(pairs: Iterable[tuple[exp.Expression, str]], types: Mapping[str, str]) -> Covering:
        """Of expressions and the columns that show them; constants are no columns' business."""
        shown: dict[str, str] = {}
        for value, name in pairs:
            if value.find(exp.Column) or is_aggregating(value):
                shown.setdefault(canonical(value), name)
        return Covering(shown, types)

    def column(self, value: exp.Expression) -> str | None:
        """The column that shows exactly this."""
        return self.shown.get(canonical(value))

    def over(self, value: exp.Expression) -> exp.Expression | None:
        """The value over the view's columns; None where it needs more, or a sign of zero."""
        keys = {text: view_column(name) for text, name in self.shown.items()}
        found = unbracketed(put_keys(value, keys))
        columns = list(found.find_all(exp.Column))
        if any(c.table != ALIAS and _BOUND.fullmatch(c.name) for c in columns):
            return None
        floating = (c for c in columns if c.table == ALIAS and self.types[c.name] in FLOATING)
        return found if all(map(_keeps_zero, floating)) else None

    def row_value(self, value: exp.Expression) -> exp.Expression | None:
        """The same for a value of one row of the view: nothing is aggregated in it any more."""
        found = self.over(value)
        return None if found is None or is_aggregating(found) else found


def _keeps_zero(column: exp.Expression) -> bool:
    """Whether -0.0 in the column's place would give the same."""
    parent = column.parent
    while isinstance(parent, exp.Paren):
        parent = parent.parent
    if isinstance(parent, (exp.Cast, exp.TryCast)):
        return _UNSIGNED.match(str(parent.args["to"].meta.get("raw", ""))) is not None
    if parent is None or isinstance(parent, (*_COMPARING, exp.Distinct)):
        return True
    return aggregate_call(parent) in _CHOOSING
