"""FROM and WHERE: the view's rows are the query's, but for conditions that are still to be asked.

    FROM    one whole mapping of the view's occurrences to the query's, table by table
    WHERE   conjuncts of the view, renamed by it  <=  conjuncts of the query

A table more in the view may repeat rows or drop them, and a condition without its alias is another
condition: so all is renamed before anything is compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, permutations, product

from sqlglot import exp

from steadyview.changes import RelationName, RelationSchema
from steadyview.views.flat import FlatQuery
from steadyview.views.routing.reasons import CannotAnswer
from steadyview.views.trees import all_names, canonical, column, substituted, unbracketed

_MOST_MAPPINGS = 720
"""How many mappings of a self-join's occurrences are tried."""
_COLUMN = re.compile(r"t(\d+)_c(\d+)")


@dataclass(frozen=True)
class Matched:
    """The view as the query would write it, and the query's conjuncts that the view has not."""

    view: FlatQuery
    rest: tuple[exp.Expression, ...]


def matches(
    query: FlatQuery,
    asked: Sequence[RelationSchema],
    view: FlatQuery,
    offered: Sequence[RelationSchema],
) -> Iterator[Matched]:
    """The view in every mapping in which it has no condition that the query has not.

    CannotAnswer where there is none. `asked` and `offered` are the tables as either knows them.
    """
    _check_same_tables(query.tables, view.tables)
    _check_same_columns((query, asked), (view, offered))
    known = {text(c) for c in query.conditions}
    found = False
    for mapping in islice(mappings(view.tables, query.tables), _MOST_MAPPINGS):
        mapped = renamed(view, mapping)
        own = {text(c) for c in mapped.conditions}
        if own <= known:
            found = True
            yield Matched(mapped, tuple(c for c in query.conditions if text(c) not in own))
    if not found:
        raise CannotAnswer("where", "it has a condition that the query has not")


def _check_same_tables(asked: Iterable[RelationName], offered: Iterable[RelationName]) -> None:
    """CannotAnswer unless both read the same tables, each as often."""
    if sorted(map(str, asked)) != sorted(map(str, offered)):
        raise CannotAnswer("from", "it does not read the same tables, each as often")


def mappings(
    own: Sequence[RelationName], others: Sequence[RelationName]
) -> Iterator[dict[int, int]]:
    """Every way to pair the occurrences with others of the same tables, all of them.

    >>> r, s = RelationName("s", ("r",)), RelationName("s", ("s",))
    >>> list(mappings([r, s, r], [r, r, s]))
    [{0: 0, 2: 1, 1: 2}, {0: 1, 2: 0, 1: 2}]
    """
    tables = list(dict.fromkeys(own))
    places = [[i for i, t in enumerate(own) if t == table] for table in tables]
    targets = [[i for i, t in enumerate(others) if t == table] for table in tables]
    for chosen in product(*(permutations(t) for t in targets)):
        yield {
            a: b for ps, ts in zip(places, chosen, strict=True) for a, b in zip(ps, ts, strict=True)
        }


def renamed(flat: FlatQuery, mapping: dict[int, int]) -> FlatQuery:
    """The query with its occurrences called otherwise."""
    values = {}
    for name in all_names((*flat.conditions, *flat.outputs, *flat.keys, *flat.having)):
        if found := _COLUMN.fullmatch(name):
            values[name] = column(f"t{mapping[int(found[1])]}_c{found[2]}")

    def over(nodes: Iterable[exp.Expression]) -> tuple[exp.Expression, ...]:
        return tuple(substituted(node, values) for node in nodes)

    return replace(
        flat,
        conditions=over(flat.conditions),
        outputs=over(flat.outputs),
        keys=over(flat.keys),
        having=over(flat.having),
    )


def text(condition: exp.Expression) -> str:
    """Equal for conditions that differ in brackets, case, or the order of the sides of = only.

    >>> from steadyview.views.fusing import expression
    >>> text(expression("(t1_c0) = t0_c0")) == text(expression("t0_c0 = t1_c0"))
    True
    """
    copy = unbracketed(condition).copy()
    for node in list(copy.find_all(exp.EQ, exp.NEQ, exp.NullSafeEQ)):
        sides = sorted((node.this, node.expression), key=canonical)
        node.set("this", sides[0])
        node.set("expression", sides[1])
    return canonical(copy)


def _check_same_columns(*sides: tuple[FlatQuery, Sequence[RelationSchema]]) -> None:
    """CannotAnswer if a column that is used is not the same for both any more."""
    used = [_used(flat) for flat, _ in sides]
    schemas = [{r.name: r for r in relations} for _, relations in sides]
    for table, number in used[0] | used[1]:
        found = [schema[table].columns[number : number + 1] for schema in schemas]
        facts = {tuple((c.name, c.type) for c in columns) for columns in found}
        if len(facts) > 1:
            raise CannotAnswer("from", f'the columns of "{table}" have changed since it was built')


def _used(flat: FlatQuery) -> set[tuple[RelationName, int]]:
    named = all_names((*flat.conditions, *flat.outputs, *flat.keys, *flat.having))
    found = (_COLUMN.fullmatch(name) for name in named)
    return {(flat.tables[int(m[1])], int(m[2])) for m in found if m}
