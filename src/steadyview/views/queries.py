"""Queries, read into a block or into drafts of their own.

A plain SELECT is read *into* the block that reads it: its relations become parts of the block, its
columns expressions. A query that is grouped, DISTINCT or a set operation other than UNION ALL
becomes a draft, and so does a WITH query that is read more than once; the block then scans it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from steadyview.plans.aggregates import Grouped
from steadyview.plans.draft import Draft, DraftInput
from steadyview.plans.operator import Operator
from steadyview.plans.project import Project
from steadyview.views.binding import unwrapped, usable
from steadyview.views.blocks import MOST_SCANS, Block, Drafts
from steadyview.views.clock import check_clock
from steadyview.views.dialect import written
from steadyview.views.from_clause import FromClause, values
from steadyview.views.grouped import GroupedQuery, aggregates_in
from steadyview.views.relational import finished
from steadyview.views.rows import BlockRows, Named, Readable, Sight
from steadyview.views.select_items import items, own_name
from steadyview.views.set_operations import added, adds, distinct, set_operation
from steadyview.views.source_text import SourceText
from steadyview.views.structure import check_query
from steadyview.views.subqueries import Subqueries
from steadyview.views.trees import all_names, column, place, unbracketed


class Reader:
    """Reads the queries of one view. With `share` a WITH query that is read twice is one draft.

    `asked`: it is no view but a query, which may have COUNT(DISTINCT ...). `blocks`: the operator
    of each draft with the block it was made in. `averages`: the arguments of AVGs by the places of
    these in the text.
    """

    def __init__(
        self, source: SourceText, world: Readable, *, share: bool = True, asked: bool = False
    ) -> None:
        self.source = source
        self.world = world
        self.asked = asked
        self.drafts = Drafts()
        self.blocks: list[tuple[Operator, Block]] = []
        self.averages: dict[int, str] = {}
        self._share = share
        self._shared: dict[int, tuple[int, tuple[Named, ...]]] = {}

    def draft(self, query: exp.Expression, sight: Sight) -> tuple[Draft, tuple[Named, ...]]:
        """The query as a draft that reads relations, views and earlier drafts."""
        query = unwrapped(query)
        check_query(self.source, query)
        sight = sight.with_ctes(query).apart()
        if isinstance(query, exp.SetOperation) and not adds(query):
            return set_operation(self, query, sight)
        if isinstance(query, exp.Select) and query.args.get("distinct"):
            return distinct(self, query, sight)
        if isinstance(query, exp.Select) and self.is_grouped(query):
            return GroupedQuery(self, query, sight).draft()
        block = Block()
        return self._plain(self._into(query, sight, block), block, query)

    def _plain(
        self, rows: BlockRows, block: Block, query: exp.Expression
    ) -> tuple[Draft, tuple[Named, ...]]:
        below = finished(rows.relation, all_names(c.value for c in rows.columns))
        outputs = tuple(
            (f"c{i}", written(unbracketed(c.value))) for i, c in enumerate(rows.columns)
        )
        return self.made(Project(below, outputs), block, None, query), rows.columns

    def made(
        self, operator: Operator, block: Block, grouped: Grouped | None, query: exp.Expression
    ) -> Draft:
        """The draft of a finished block."""
        self.blocks.append((operator, block))
        start = place(query)
        words = " ".join(self.source.text[start : start + 200].split())
        says = words if len(words) <= 60 else f"{words[:57]}..."
        return Draft(operator, tuple(block.inputs), grouped, says)

    def query(self, query: exp.Expression, sight: Sight, block: Block) -> BlockRows:
        """The query's rows as part of the block: read into it, or scanned."""
        query = unwrapped(query)
        check_query(self.source, query)
        if isinstance(query, exp.Select):
            apart = bool(query.args.get("distinct")) or self.is_grouped(query)
        else:
            apart = isinstance(query, exp.SetOperation) and not adds(query)
        if apart:
            return self._scanned(query, sight, block, None)
        return self._into(query, sight.with_ctes(query), block)

    def with_query(self, cte: exp.CTE, sight: Sight, block: Block) -> BlockRows:
        """A WITH query's rows: one draft where it may be read again."""
        if self._share and _is_read_again(cte):
            return self._scanned(cte.this, sight, block, id(cte))
        return self.query(cte.this, sight, block)

    def _scanned(
        self, query: exp.Expression, sight: Sight, block: Block, key: int | None
    ) -> BlockRows:
        """The query as a draft, scanned by the block; one draft per key."""
        known = None if key is None else self._shared.get(key)
        if known is None:
            draft, columns = self.draft(query, sight)
            known = self.drafts.add(draft), columns
            if key is not None:
                self._shared[key] = known
        number, columns = known
        scan = block.scan(DraftInput(number), len(columns), "")
        self.check_scans(block, place(query))
        pairs = zip(columns, scan.columns, strict=True)
        return BlockRows(scan, columns=tuple(replace(c, value=column(n)) for c, n in pairs))

    def check_scans(self, block: Block, at: int) -> None:
        """TOO_MANY_RELATIONS if the block reads more than can be kept."""
        if len(block.inputs) > MOST_SCANS:
            fact = f"has more than {MOST_SCANS} occurrences of tables"
            raise self.source.refusal("TOO_MANY_RELATIONS", at, fact)

    def _into(self, query: exp.Expression, sight: Sight, block: Block) -> BlockRows:
        if isinstance(query, exp.Values):
            return values(self, query, sight, block)
        if isinstance(query, exp.SetOperation):
            return added(self, query, sight, block)
        if not isinstance(query, exp.Select):
            raise self.source.refusal("UNSUPPORTED_SYNTAX", place(query), "has no SELECT here")
        rows = self.read_from(query, sight, block)
        rows.columns = self._selected(query, rows, sight, block)
        return rows

    def read_from(self, query: exp.Select, sight: Sight, block: Block) -> BlockRows:
        """FROM and WHERE."""
        rows = FromClause(self, sight, block).rows(query)
        where = query.args.get("where")
        if where is not None:
            Subqueries.over(self, rows, sight, block).require(where.this)
        return rows

    def _selected(
        self, query: exp.Select, rows: BlockRows, sight: Sight, block: Block
    ) -> tuple[Named, ...]:
        """The columns of a query without groups; an alias may be used to the right of it."""
        found: list[Named] = []
        aliases: dict[str, exp.Expression] = {}
        asking = Subqueries.over(self, rows, sight, block)
        asking.binder = replace(asking.binder, aliases=aliases.get)
        for item in items(self.source, query):
            if item.star is not None:
                for c in item.stars(self.source, rows.scope):
                    found.append(Named(c.name, usable(self.source, c, item.at), item.at))
                continue
            value = asking.value(item.value)
            if item.alias:
                aliases.setdefault(item.alias.lower(), value)
            found.append(Named(item.alias or own_name(self.source, item), value, item.at))
        return tuple(found)

    def is_grouped(self, query: exp.Expression) -> bool:
        """Whether the query aggregates: GROUP BY, HAVING, or an aggregate without."""
        if query.args.get("group") or query.args.get("having"):
            return True
        return any(aggregates_in(e) for e in query.expressions)

    def check_clock(self, conditions: Sequence[exp.Expression], block: Block) -> None:
        """See `clock`."""
        for condition in conditions:
            check_clock(self.source, condition, block.types)


def _is_read_again(cte: exp.CTE) -> bool:
    """Whether the WITH query may be read at more than one place."""
    owner = cte.parent.parent if cte.parent else None
    if owner is None:
        return False
    name = cte.alias.lower()
    return len([t for t in owner.find_all(exp.Table) if not t.db and t.name.lower() == name]) > 1
