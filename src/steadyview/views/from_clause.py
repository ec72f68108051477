"""FROM: relations, other views, WITH queries, subqueries, VALUES and joins of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from steadyview.changes import RelationSchema
from steadyview.errors import ViewRefused
from steadyview.plans.draft import RelationInput, ViewInput
from steadyview.views.binding import Binder
from steadyview.views.blocks import Block
from steadyview.views.columns import Scope, VisibleColumn
from steadyview.views.joining import Joining
from steadyview.views.names import find_relation
from steadyview.views.relational import NOTHING, Constants
from steadyview.views.rows import BlockRows, Named, Sight, product, scope_of
from steadyview.views.trees import column, place

if TYPE_CHECKING:
    from steadyview.views.queries import Reader


@dataclass(frozen=True)
class FromClause:
    """Reads relations into a block."""

    reader: Reader
    sight: Sight
    block: Block

    def rows(self, query: exp.Select) -> BlockRows:
        """All that the query reads; one row of nothing where it has no FROM."""
        clause = query.args.get("from_")
        if clause is None:
            return BlockRows(NOTHING)
        return self._joined(self._relation(clause.this), query.args.get("joins") or ())

    def _joined(self, current: BlockRows, joins: Sequence[exp.Join]) -> BlockRows:
        """Joins bind tighter than commas."""
        groups: list[BlockRows] = []
        for join in joins:
            if self._is_comma(join):
                groups.append(current)
                current = self._relation(join.this)
            else:
                self._check_nesting(join)
                joining = Joining(self.reader, self.sight, self.block)
                current = joining.joined(current, self._relation(join.this), join)
        return product([*groups, current])

    def _is_comma(self, join: exp.Join) -> bool:
        return self.reader.source.text[place(join) : place(join) + 1] == ","

    def _check_nesting(self, join: exp.Join) -> None:
        """Spark reads an ON only right behind its JOIN."""
        if isinstance(join.this, exp.Subquery) or not join.this.args.get("joins"):
            return
        source, on = self.reader.source, join.args.get("on")
        at = source.text.upper().rfind("ON", 0, place(on)) if on else place(join)
        fact = "says ON behind another JOIN"
        way = "write every ON right behind the JOIN that it belongs to"
        raise source.refusal("UNSUPPORTED_SYNTAX", at, fact, instead=way, recompute=False)

    def _relation(self, node: exp.Expression) -> BlockRows:
        if isinstance(node, exp.Table):
            return self._table(node)
        if isinstance(node, exp.Values):
            rows = values(self.reader, node, self.sight, self.block)
        elif not isinstance(node, exp.Subquery):
            raise self._no_relation(node)
        elif _holds_joins(node.this):
            return self._bracketed(node)
        else:
            rows = self.reader.query(node.this, self.sight, self.block)
        rows.scope = self._aliased(scope_of(rows.columns), node)
        return rows

    def _no_relation(self, node: exp.Expression) -> ViewRefused:
        source = self.reader.source
        if isinstance(node, exp.Lateral):
            return source.refusal("LATERAL_JOIN", place(node), "uses LATERAL in FROM")
        return source.refusal("TABLE_FUNCTION", place(node), "reads something that is no table")

    def _function(self, node: exp.Table) -> ViewRefused:
        name = str(getattr(node.this, "name", ""))
        fact, way = f'reads the function "{name}"', None
        if name.upper() == "TABLE":
            way = "write the name of a table, source.table, without TABLE"
        recompute = None if way is None else False
        at = place(node)
        return self.reader.source.refusal(
            "TABLE_FUNCTION", at, fact, instead=way, recompute=recompute
        )

    def _bracketed(self, node: exp.Subquery) -> BlockRows:
        """Joins in brackets."""
        first = node.this.copy()
        first.set("joins", None)
        rows = self._joined(self._relation(first), node.this.args.get("joins") or ())
        if node.args.get("alias"):
            rows.scope = self._aliased(rows.scope, node)
        return rows

    def _table(self, node: exp.Table) -> BlockRows:
        if not isinstance(node.this, exp.Identifier):
            raise self._function(node)
        parts = tuple(part.name for part in node.parts)
        if len(parts) == 1 and parts[0].lower() in self.sight.ctes:
            rows = self._with_query(parts[0].lower())
        else:
            rows = self._stored(node, parts)
        if node.args.get("alias"):
            rows.scope = self._aliased(rows.scope, node)
        return rows

    def _with_query(self, name: str) -> BlockRows:
        cte, seen = self.sight.ctes[name]
        rows = self.reader.with_query(cte, seen, self.block)
        rows.scope = self._aliased(scope_of(rows.columns), cte)
        return rows

    def _stored(self, node: exp.Table, parts: tuple[str, ...]) -> BlockRows:
        alias = node.alias or parts[-1]
        view = self._view(parts)
        if view is not None:
            return self._other_view(view, parts, alias, place(node))
        world = self.reader.world
        relation = find_relation(self.reader.source, parts, place(node), world.relations)
        return self._occurrence(relation, parts, alias, place(node))

    def _view(self, parts: tuple[str, ...]) -> str | None:
        """The other view of that name; a relation without a path goes before it."""
        world, name = self.reader.world, parts[0].lower()
        if len(parts) > 1 or any(
            r.name.source.lower() == name and not r.name.path for r in world.relations
        ):
            return None
        return next((view for view in world.views if view.lower() == name), None)

    def _other_view(self, view: str, parts: tuple[str, ...], alias: str, at: int) -> BlockRows:
        described = self.reader.world.views[view]
        scan = self.block.scan(ViewInput(view), len(described), alias)
        self.reader.check_scans(self.block, at)
        visible = []
        for (name, type_), stored in zip(described, scan.columns, strict=True):
            self.block.types[stored] = type_
            visible.append(VisibleColumn(parts, name, column(stored)))
        return BlockRows(scan, Scope(tuple(visible)))

    def _occurrence(
        self, relation: RelationSchema, parts: tuple[str, ...], alias: str, at: int
    ) -> BlockRows:
        unsupported = self.reader.world.unsupported.get(relation.name, {})
        usable = [i for i, c in enumerate(relation.columns) if c.name not in unsupported]
        width, spare = len(relation.columns), usable[0] if usable else 0
        scan = self.block.scan(RelationInput(relation.name), width, alias, spare)
        self.reader.check_scans(self.block, at)
        visible = []
        for c, stored in zip(relation.columns, scan.columns, strict=True):
            self.block.types[stored] = c.type
            kind = unsupported.get(c.name)
            visible.append(VisibleColumn(parts, c.name, column(stored), unsupported=kind))
        known = {c.name for c in relation.columns}
        for name, kind in unsupported.items():
            if name not in known:
                visible.append(VisibleColumn(parts, name, exp.Null(), unsupported=kind))
        return BlockRows(scan, Scope(tuple(visible)))

    def _aliased(self, scope: Scope, node: exp.Expression) -> Scope:
        alias = node.args.get("alias")
        if alias is None:
            return scope.renamed(("",), ())
        named = tuple(c.name for c in alias.columns)
        count = len(scope.star(()))
        if named and len(named) != count:
            fact = f'names {len(named)} columns for the {count} of "{alias.name}"'
            way = f'name all {count}, or write "{alias.name}" without names'
            raise self.reader.source.refusal("UNKNOWN_COLUMN", place(node), fact, instead=way)
        return scope.renamed((alias.name if alias.this else "",), named)


def _holds_joins(node: exp.Expression) -> bool:
    """Whether brackets hold a table or joins, and no query."""
    joins = isinstance(node, exp.Subquery) and bool(node.args.get("joins"))
    return joins or isinstance(node, exp.Table)


def values(reader: Reader, query: exp.Values, sight: Sight, block: Block) -> BlockRows:
    """The rows of VALUES; their columns are `col1`, `col2`, ..."""
    binder = Binder(reader.source, Scope(), sight.outer)
    rows = []
    for row in query.expressions:
        cells = row.expressions if isinstance(row, exp.Tuple) else [row]
        rows.append(tuple(binder.bind(cell) for cell in cells))
    at, width = place(query), len(rows[0])
    if any(len(row) != width for row in rows):
        raise reader.source.refusal("SYNTAX_ERROR", at, "has rows of different lengths in VALUES")
    columns = tuple(block.fresh("p") for _ in range(width))
    named = tuple(Named(f"col{i + 1}", column(c), at) for i, c in enumerate(columns))
    return BlockRows(Constants(columns, tuple(rows)), columns=named)
