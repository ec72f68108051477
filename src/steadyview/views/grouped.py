"""A grouped SELECT: keys, aggregates, and outputs over them.

An output may speak of keys, of aggregates and of constants only. A key is found inside a longer
expression where the expression's tree has the key's tree as a part. Where a subquery stands beside
the aggregates, or in HAVING, the groups become a draft, and a block above it asks the subquery.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from steadyview.plans.aggregates import THERE, Aggregate, Function, Grouped
from steadyview.plans.draft import Draft, DraftInput
from steadyview.plans.project import Project
from steadyview.views.binding import Binder, usable
from steadyview.views.blocks import Block
from steadyview.views.columns import Scope
from steadyview.views.dialect import written
from steadyview.views.functions import PLANNED
from steadyview.views.relational import Scanned, finished
from steadyview.views.rows import BlockRows, Named, Sight
from steadyview.views.select_items import Item, items, own_name
from steadyview.views.subqueries import Subqueries, asks
from steadyview.views.trees import (
    all_names,
    canonical,
    column,
    conjuncts,
    names,
    place,
    put_keys,
    substituted,
    unbracketed,
)

if TYPE_CHECKING:
    from steadyview.views.queries import Reader


def aggregates_in(node: exp.Expression) -> list[exp.Expression]:
    """The aggregates of the expression, not those of its subqueries."""
    return [n for n in _shallow(node) if _is_aggregate(n)]


def _is_aggregate(node: exp.Expression) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.name).lower() in PLANNED


def _shallow(node: exp.Expression) -> Iterator[exp.Expression]:
    """The node and what is in it, but no query and no window."""
    if isinstance(node, (exp.Query, exp.Window)):
        return
    yield node
    for child in node.iter_expressions():
        yield from _shallow(child)


def asks_beside(node: exp.Expression, known: Collection[str]) -> bool:
    """Whether a subquery other than the known ones stands in the expression beside aggregates."""
    if _is_aggregate(node):
        return False
    if asks(node):
        return written(node) not in known
    return any(asks_beside(child, known) for child in node.iter_expressions())


@dataclass
class Above:
    """The block above the groups: its rows are the groups."""

    block: Block
    rows: BlockRows
    values: dict[str, exp.Expression]


class GroupedQuery:
    """Reads one grouped SELECT."""

    def __init__(self, reader: Reader, query: exp.Select, sight: Sight) -> None:
        self._reader = reader
        self._source = reader.source
        self._query = query
        self._sight = sight
        self._block = Block()
        self._rows = reader.read_from(query, sight, self._block)
        self._items = items(self._source, query)
        self._keys: dict[str, exp.Expression] = {}
        self._aggregates: dict[tuple[str, str | None], Aggregate] = {}
        self._arguments: dict[str, exp.Expression] = {}
        self._aliases: dict[str, exp.Expression] = {}
        for key in self._read_keys():
            self._keys.setdefault(canonical(key), key)
        # a subquery that is grouped by is asked below the groups, wherever else it stands
        grouped_by = all_names(self._keys.values())
        self._grouped_marks = {
            text: value for text, value in self._rows.marks.items() if names(value) <= grouped_by
        }
        self._key_names = {c: column(f"g{i}") for i, c in enumerate(self._keys)}

    def draft(self) -> tuple[Draft, tuple[Named, ...]]:
        """The draft of the whole query."""
        having = self._query.args.get("having")
        wanted = [item.value for item in self._items] + ([having.this] if having else [])
        if any(asks_beside(node, self._grouped_marks) for node in wanted):
            return self._above()
        columns = self._columns(None)
        outputs = tuple((f"c{i}", written(unbracketed(c.value))) for i, c in enumerate(columns))
        condition = written(self._output(having.this, None)) if having else None
        return self._folded(outputs, condition), columns

    # --- groups ---

    def _folded(self, outputs: tuple[tuple[str, str], ...], having: str | None) -> Draft:
        keys = tuple(
            (f"g{i}", written(unbracketed(key))) for i, key in enumerate(self._keys.values())
        )
        grouped = Grouped(
            keys, tuple(self._aggregates.values()), outputs, THERE if keys else "1", having
        )
        needed = all_names(self._keys.values()) | all_names(self._arguments.values())
        operator = finished(self._rows.relation, needed)
        return self._reader.made(operator, self._block, grouped, self._query)

    def _aggregate(self, node: exp.Expression) -> exp.Expression:
        """The column under which the aggregate's value is found."""
        name = PLANNED[str(node.name).lower()]
        argument = self._argument(node, name)
        function: Function = name.lower()  # type: ignore[assignment]
        if any(isinstance(given, exp.Distinct) for given in node.expressions):
            function = "count_distinct"
        key = (function, None if argument is None else canonical(argument))
        if key not in self._aggregates:
            sql = None if argument is None else written(unbracketed(argument))
            self._aggregates[key] = Aggregate(f"a{len(self._aggregates)}", function, sql)
            if argument is not None:
                self._arguments[key[1] or ""] = argument
        if function == "avg":
            self._reader.averages[place(node)] = str(self._aggregates[key].argument)
        return column(self._aggregates[key].name)

    def _argument(self, node: exp.Expression, name: str) -> exp.Expression | None:
        given = node.expressions
        if given and isinstance(given[0], exp.Distinct):
            given = given[0].expressions
        if not given:
            at = self._source.text.find(")", place(node))
            raise self._source.refusal("SYNTAX_ERROR", at, f"has {name} of nothing")
        if len(given) > 1:
            fact = f"has {name} of several expressions"
            raise self._source.refusal("OTHER_AGGREGATE", self._comma(node), fact)
        only = unbracketed(given[0])
        counts = isinstance(only, exp.Star) or (
            isinstance(only, exp.Literal) and str(only.this).isdigit()
        )
        if name == "COUNT" and counts and given is node.expressions:
            return None
        binder = replace(self._plain_binder(), aggregate=self._nested)
        return self._marked(given[0], binder)

    def _nested(self, node: exp.Expression) -> exp.Expression:
        fact = "has an aggregate in an aggregate"
        raise self._source.refusal("AGGREGATE_MISPLACED", place(node), fact)

    def _comma(self, node: exp.Expression) -> int:
        depth = 0
        for token in self._source.tokens:
            if token.start < place(node):
                continue
            depth += (token.raw in "([") - (token.raw in ")]")
            if token.raw == "," and depth == 1:
                return token.start
        return place(node)

    def _plain_binder(self) -> Binder:
        asked = self._reader.asked
        return Binder(self._source, self._rows.scope, self._sight.outer, distinct=asked)

    # --- keys ---

    def _read_keys(self) -> list[exp.Expression]:
        group = self._query.args.get("group")
        if group is None:
            return []
        if group.args.get("all") and not group.expressions:
            chosen = [i for i in self._items if not aggregates_in(i.value)]
            return [value for item in chosen for value in self._raw(item)]
        return [self._key(node) for node in group.expressions]

    def _key(self, node: exp.Expression) -> exp.Expression:
        bare = unbracketed(node)
        if isinstance(bare, exp.Literal) and str(bare.this).isdigit():
            return self._ordinal(int(str(bare.this)), place(node))
        binder = replace(self._plain_binder(), aliases=self._alias_before(len(self._items)))
        return self._marked(node, binder)

    def _ordinal(self, number: int, at: int) -> exp.Expression:
        starred = any(i.star is not None for i in self._items)
        if not 1 <= number <= len(self._items) or starred:
            raise self._source.refusal("GROUP_ORDINAL", at, f"groups by column {number}")
        return self._raw(self._items[number - 1])[0]

    def _raw(self, item: Item) -> list[exp.Expression]:
        """The item's values over the block's columns; refused where it has an aggregate."""
        if item.star is not None:
            found = item.stars(self._source, self._rows.scope)
            return [usable(self._source, c, item.at) for c in found]
        aliases = self._alias_before(self._items.index(item))
        return [self._marked(item.value, replace(self._plain_binder(), aliases=aliases))]

    def _marked(self, node: exp.Expression, binder: Binder) -> exp.Expression:
        asking = Subqueries.over(self._reader, self._rows, self._sight, self._block)
        return replace(asking, binder=binder).value(node)

    def _alias_before(self, number: int):  # type: ignore[no-untyped-def]
        def alias(name: str) -> exp.Expression | None:
            for item in self._items[:number]:
                if item.alias and item.alias.lower() == name:
                    return self._raw(item)[0]
            return None

        return alias

    # --- outputs ---

    def _columns(self, above: Above | None) -> tuple[Named, ...]:
        found: list[Named] = []
        for item in self._items:
            if item.star is not None:
                for c in item.stars(self._source, self._rows.scope):
                    value = self._placed(usable(self._source, c, item.at), item.at)
                    found.append(Named(c.name, self._over(value, above), item.at))
                continue
            raw = self._bound(item.value, above)
            if item.alias:
                self._aliases.setdefault(item.alias.lower(), raw)
            name = item.alias or own_name(self._source, item)
            found.append(Named(name, self._over(raw, above), item.at))
        return tuple(found)

    def _placed(self, value: exp.Expression, at: int) -> exp.Expression:
        copy = value.copy()
        for node in copy.walk():
            node.meta["start"] = at
        return copy

    def _output(self, node: exp.Expression, above: Above | None) -> exp.Expression:
        return self._over(self._bound(node, above), above)

    def _bound(self, node: exp.Expression, above: Above | None) -> exp.Expression:
        binder = replace(self._plain_binder(), aggregate=self._aggregate, aliases=self._aliases.get)
        if above is None:
            known = self._grouped_marks
            return replace(binder, subquery=lambda asked: known[written(asked)].copy()).bind(node)
        asking = replace(binder, after=lambda value: self._over(value, above))
        own = Subqueries.over(self._reader, above.rows, self._sight, above.block)
        return replace(own, binder=asking).value(node)

    def _over(self, value: exp.Expression, above: Above | None) -> exp.Expression:
        """The value over keys and aggregates, or over the columns of the block above."""
        found = put_keys(value, self._key_names)
        known = {f"g{i}" for i in range(len(self._keys))}
        known |= {a.name for a in self._aggregates.values()}
        known |= set(above.rows.relation.columns) if above else set()
        for part in found.find_all(exp.Column):
            if part.name not in known or (above and part.name.startswith("t")):
                fact = "selects an expression that is neither grouped nor aggregated"
                raise self._source.refusal("NOT_GROUPED", place(part), fact)
        return substituted(found, above.values) if above else found

    # --- subqueries beside aggregates ---

    def _above(self) -> tuple[Draft, tuple[Named, ...]]:
        """The groups as a draft, and a block over it that asks."""
        having = self._query.args.get("having")
        nodes = [i.value for i in self._items] + ([having.this] if having else [])
        for node in nodes:
            for aggregate in aggregates_in(node):
                self._aggregate(aggregate)
        shown = [f"g{i}" for i in range(len(self._keys))]
        shown += [a.name for a in self._aggregates.values()]
        below = self._folded(tuple((f"c{i}", n) for i, n in enumerate(shown)), None)
        block = Block(given=dict(self._block.given))
        scan = block.scan(DraftInput(self._reader.drafts.add(below)), len(shown), "")
        values: dict[str, exp.Expression] = {
            n: column(c) for n, c in zip(shown, scan.columns, strict=True)
        }
        above = Above(block, BlockRows(scan, self._scope_above(scan, values)), values)
        if having is not None:
            for part in conjuncts(having.this):
                above.rows.require([self._output(part, above)])
        columns = self._columns(above)
        outputs = tuple((f"c{i}", written(unbracketed(c.value))) for i, c in enumerate(columns))
        operator = finished(above.rows.relation, all_names(c.value for c in columns))
        return self._reader.made(Project(operator, outputs), block, None, self._query), columns

    def _scope_above(self, scan: Scanned, values: dict[str, exp.Expression]) -> Scope:
        """The columns of FROM that a subquery may speak of: those that are grouped by."""
        found = []
        own = {c.name for c in values.values() if isinstance(c, exp.Column)}
        for c in self._rows.scope.columns:
            over = put_keys(c.value, self._key_names)
            if names(over) <= set(values):
                found.append(replace(c, value=substituted(over, values)))
        assert own == set(scan.columns)
        return Scope(tuple(found))
