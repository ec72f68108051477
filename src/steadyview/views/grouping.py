"""A grouped SELECT, taken apart into group keys, aggregated arguments and outputs over them.

An output may speak of group keys, of aggregates and of constants only. A group key inside a longer
expression is recognized where it is written with the same tokens, *and* reading the expression with
the key's place taken by a name gives the same tree: so `a + b` is found in `(a + b) * 2` and not in
`a + b * 2`.
"""

from __future__ import annotations

from collections.abc import Iterator

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from steadyview.views.definition import Argument, Average, Grouping
from steadyview.views.fragments import Fragment, Piece, canonical, sql, unbracketed
from steadyview.views.source_text import Span


class GroupingDraft:
    """Group keys, and the aggregates as outputs ask for them. Equal arguments are one."""

    def __init__(self, keys: list[Fragment]) -> None:
        distinct = {canonical(unbracketed(key)): unbracketed(key) for key in keys}
        self._keys = list(distinct.values())
        self._arguments: dict[tuple[str, ...], Fragment] = {}
        self._summed: set[int] = set()
        self._averages: dict[Average, None] = {}

    def state(self, aggregate: str, argument: Fragment | None) -> str:
        """The name under which outputs find the aggregate's value."""
        if argument is None:
            return "_count"
        number = self._number(unbracketed(argument))
        if aggregate == "COUNT":
            return f"_nonnull_{number}"
        self._summed.add(number)
        return f"_visible_{aggregate.lower()}_{number}"

    def averaged(self, call: Span, argument: Span, fragment: Fragment) -> None:
        """Keep where the text has an AVG of the argument."""
        number = self._number(unbracketed(fragment))
        places = (call.start, call.stop), (argument.start, argument.stop)
        self._averages[Average(*places, number)] = None

    def over_keys(self, fragment: Fragment) -> Fragment:
        """The fragment with every group key in it replaced by the key's name `_g{number}`."""
        numbered = sorted(enumerate(self._keys), key=lambda pair: -len(pair[1]))
        for number, key in numbered:
            fragment = _replaced(fragment, key, f"_g{number}")
        return fragment

    def finished(self) -> Grouping:
        """The grouping as the definition has it."""
        arguments = [
            Argument(sql(fragment), number in self._summed)
            for number, fragment in enumerate(self._arguments.values())
        ]
        keys = tuple(sql(key) for key in self._keys)
        return Grouping(keys, tuple(arguments), tuple(self._averages))

    def used(self) -> Iterator[Fragment]:
        """All fragments over stored columns: keys and arguments."""
        yield from self._keys
        yield from self._arguments.values()

    def _number(self, argument: Fragment) -> int:
        self._arguments.setdefault(canonical(argument), argument)
        return list(self._arguments).index(canonical(argument))


def _replaced(fragment: Fragment, key: Fragment, name: str) -> Fragment:
    wanted, at = canonical(key), 0
    while at + len(wanted) <= len(fragment):
        stop = at + len(wanted)
        candidate = fragment[at]
        if canonical(fragment[at:stop]) == wanted:
            piece = Piece(name, candidate.spaced, candidate.offset)
            changed = (*fragment[:at], piece, *fragment[stop:])
            if len(wanted) == 1 or _same_tree(fragment, changed, key, name):
                fragment = changed
        at += 1
    return fragment


def _same_tree(before: Fragment, after: Fragment, key: Fragment, name: str) -> bool:
    """Whether `after` is `before` with one subexpression equal to `key` replaced by `name`."""
    whole, changed, part = _tree(before), _tree(after), _tree(key)
    if whole is None or changed is None or part is None:
        return False
    count = sum(node == part for node in whole.walk())
    return any(_with_one(whole, part, name, n) == changed for n in range(count))


def _with_one(whole: exp.Expression, part: exp.Expression, name: str, n: int) -> exp.Expression:
    copy = whole.copy()
    equal = [node for node in copy.walk() if node == part]
    if equal[n] is copy:
        return exp.column(name)
    equal[n].replace(exp.column(name))
    return copy


def _tree(fragment: Fragment) -> exp.Expression | None:
    try:
        tree = sqlglot.parse_one(f"SELECT {sql(fragment)}", read="spark")
    except (SqlglotError, RecursionError):
        return None
    expression: exp.Expression = tree.expressions[0]
    return expression
