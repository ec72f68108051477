"""Queries, read into a block or into drafts of their own.

A plain SELECT is read *into* the block that reads it: its relations become parts of the block, its
columns expressions. A query that is grouped, DISTINCT or a set operation other than UNION ALL
becomes a draft, and so does a WITH query that is read more than once; the block then scans it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from steadyview.changes import RelationName, RelationSchema
from steadyview.errors import ViewRefused
from steadyview.plans.aggregates import Aggregate, Grouped
from steadyview.plans.draft import Draft, DraftInput, RelationInput, ViewInput
from steadyview.plans.project import Project
from steadyview.plans.scan import column as scan_column
from steadyview.views.binding import Binder, unwrapped, usable
from steadyview.views.blocks import MOST_SCANS, Block, Drafts
from steadyview.views.columns import Scope, Visible
from steadyview.views.dialect import written
from steadyview.views.names import find_relation
from steadyview.views.relational import (
    NOTHING,
    Added,
    Constants,
    Projected,
    Relational,
    filtered,
    finished,
    halved,
    joined,
)
from steadyview.views.select_items import Item, items, own_name
from steadyview.views.source_text import SourceText
from steadyview.views.structure import check_query
from steadyview.views.trees import (
    all_names,
    column,
    conjunction,
    conjuncts,
    inside,
    names,
    negated,
    place,
    plain,
    unbracketed,
)

_TIMES = {
    ("except", True): "CASE WHEN l > 0 AND r = 0 THEN 1 ELSE 0 END",
    ("intersect", True): "CASE WHEN l > 0 AND r > 0 THEN 1 ELSE 0 END",
    ("except", False): "GREATEST(l - r, 0)",
    ("intersect", False): "LEAST(l, r)",
}
"""How often a row is shown that one side has l times and the other r times; True: DISTINCT."""


@dataclass(frozen=True)
class World:
    """What the view may read: watched relations, their unusable columns, other views' columns."""

    relations: Sequence[RelationSchema]
    unsupported: Mapping[RelationName, Mapping[str, str]]
    views: Mapping[str, Sequence[tuple[str, str]]]


@dataclass(frozen=True)
class Sight:
    """What a query sees: WITH queries (each with what it sees itself), and the scopes around it.

    `reach`: whether columns of the nearest scope around may be named here.
    """

    ctes: Mapping[str, tuple[exp.CTE, Sight]] = field(default_factory=dict)
    outer: tuple[Scope, ...] = ()
    reach: bool = False

    def with_ctes(self, query: exp.Expression) -> Sight:
        """This, and the WITH queries of the query, each of which sees those before it."""
        sight = self
        clause = query.args.get("with_")
        for cte in clause.expressions if clause else ():
            named = {**sight.ctes, cte.alias.lower(): (cte, replace(sight, outer=(), reach=False))}
            sight = replace(sight, ctes=named)
        return sight

    def apart(self) -> Sight:
        """From inside a draft: what is around can be seen, but not named."""
        return replace(self, reach=False)

    def within(self, scope: Scope) -> Sight:
        """From inside a subquery of the scope."""
        return Sight(self.ctes, (scope, *self.outer), reach=True)


@dataclass(frozen=True)
class Named:
    """A column of a query: its name, its bound expression, where it comes from."""

    name: str
    value: exp.Expression
    at: int


@dataclass
class Rows:
    """A query or FROM clause read into a block.

    `beyond`: conditions that speak of columns around the query, still to be met.
    """

    relation: Relational
    scope: Scope = Scope()
    columns: tuple[Named, ...] = ()
    beyond: tuple[exp.Expression, ...] = ()

    def require(self, conditions: Sequence[exp.Expression]) -> None:
        """Only rows that meet them."""
        own = frozenset(self.relation.columns)
        within = [c for c in conditions if names(c) <= own]
        self.relation = filtered(self.relation, within)
        self.beyond += tuple(c for c in conditions if not names(c) <= own)


class Reader:
    """Reads the queries of one view. With `share` a WITH query that is read twice is one draft."""

    def __init__(self, source: SourceText, world: World, *, share: bool = True) -> None:
        self.source = source
        self.drafts = Drafts()
        self.types: dict[tuple[int, str], str] = {}
        self.blocks: list[tuple[object, Block]] = []
        self.averages: dict[int, str] = {}
        self._world = world
        self._share = share
        self._shared: dict[int, tuple[int, tuple[Named, ...]]] = {}
        self._marks: dict[tuple[int, str], tuple[exp.Expression, Rows]] = {}

    # --- drafts ---

    def draft(self, query: exp.Expression, sight: Sight) -> tuple[Draft, tuple[Named, ...]]:
        """The query as a draft that reads relations, views and earlier drafts."""
        query = unwrapped(query)
        check_query(self.source, query)
        sight = sight.with_ctes(query).apart()
        if isinstance(query, exp.SetOperation) and not _adds(query):
            return self._set_operation(query, sight)
        if isinstance(query, exp.Select) and query.args.get("distinct"):
            return self._distinct(query, sight)
        if isinstance(query, exp.Select) and self._is_grouped(query):
            return self._grouped(query, sight)
        block = Block()
        rows = self._into(query, sight, block)
        return self._plain(rows, block, query)

    def _plain(
        self, rows: Rows, block: Block, query: exp.Expression
    ) -> tuple[Draft, tuple[Named, ...]]:
        needed = all_names(c.value for c in rows.columns)
        below = finished(rows.relation, needed)
        outputs = tuple((f"c{i}", _sql(c.value)) for i, c in enumerate(rows.columns))
        return self._made(Project(below, outputs), block, None, query), rows.columns

    def _made(
        self, operator: object, block: Block, grouped: Grouped | None, query: exp.Expression
    ) -> Draft:
        self.blocks.append((operator, block))
        return Draft(operator, tuple(block.inputs), grouped, self._says(query))  # type: ignore[arg-type]

    def _says(self, query: exp.Expression) -> str:
        start = place(query)
        words = " ".join(self.source.text[start : start + 200].split())
        return words if len(words) <= 60 else f"{words[:57]}..."

    def _scanned(
        self, query: exp.Expression, sight: Sight, block: Block, key: int | None = None
    ) -> Rows:
        """The query as a draft, scanned by the block."""
        known = self._shared.get(key) if key is not None else None
        if known is None:
            draft, columns = self.draft(query, sight)
            known = self.drafts.add(draft), columns
            if key is not None:
                self._shared[key] = known
        number, columns = known
        scan = block.scan(DraftInput(number), len(columns), "")
        self._check_scans(block, place(query))
        values = [column(c) for c in scan.columns]
        named = [replace(c, value=v) for c, v in zip(columns, values, strict=True)]
        return Rows(scan, columns=tuple(named))

    def _check_scans(self, block: Block, at: int) -> None:
        if len(block.inputs) > MOST_SCANS:
            fact = f"has more than {MOST_SCANS} occurrences of tables"
            raise self.source.refusal("TOO_MANY_RELATIONS", at, fact)

    # --- queries into a block ---

    def query(self, query: exp.Expression, sight: Sight, block: Block) -> Rows:
        """The query's rows as part of the block: read into it, or scanned."""
        query = unwrapped(query)
        check_query(self.source, query)
        grouped = isinstance(query, exp.Select) and (
            query.args.get("distinct") or self._is_grouped(query)
        )
        if grouped or (isinstance(query, exp.SetOperation) and not _adds(query)):
            return self._scanned(query, sight, block)
        return self._into(query, sight.with_ctes(query), block)

    def _into(self, query: exp.Expression, sight: Sight, block: Block) -> Rows:
        if isinstance(query, exp.Values):
            return self._values(query, sight, block)
        if isinstance(query, exp.SetOperation):
            return self._added(_parts_of(query), sight, block)
        if not isinstance(query, exp.Select):
            raise self.source.refusal("UNSUPPORTED_SYNTAX", place(query), "has no SELECT here")
        rows = self._from(query, sight, block)
        self._where(query, rows, sight, block)
        rows.columns = self._selected(query, rows, sight, block)
        return rows

    def _values(self, query: exp.Values, sight: Sight, block: Block) -> Rows:
        binder = Binder(self.source, Scope(), sight.outer)
        rows = []
        for row in query.expressions:
            cells = row.expressions if isinstance(row, exp.Tuple) else [row]
            rows.append(tuple(binder.bind(cell) for cell in cells))
        width = len(rows[0])
        if any(len(row) != width for row in rows):
            fact = "has rows of different lengths in VALUES"
            raise self.source.refusal("SYNTAX_ERROR", place(query), fact)
        columns = tuple(block.fresh("p") for _ in range(width))
        at = place(query)
        named = tuple(Named(f"col{i + 1}", column(c), at) for i, c in enumerate(columns))
        return Rows(Constants(columns, tuple(rows)), columns=named)

    def _added(self, parts: Sequence[exp.Expression], sight: Sight, block: Block) -> Rows:
        """The bag sum of queries."""
        read = [self.query(part, sight.apart(), block) for part in parts]
        width = len(read[0].columns)
        for part, rows in zip(parts, read, strict=True):
            self._check_width(part, len(rows.columns), width)
        sides = tuple(_projected(rows, block) for rows in read)
        columns = tuple(block.fresh("p") for _ in range(width))
        named = [replace(c, value=column(n)) for c, n in zip(read[0].columns, columns, strict=True)]
        return Rows(Added(sides, columns), columns=tuple(named))

    def _check_width(self, query: exp.Expression, width: int, wanted: int) -> None:
        if width != wanted:
            fact = f"combines a SELECT of {wanted} columns with one of {width}"
            raise self.source.refusal("SET_OPERATION", place(query), fact)

    # --- set operations, DISTINCT ---

    def _set_operation(
        self, query: exp.SetOperation, sight: Sight
    ) -> tuple[Draft, tuple[Named, ...]]:
        block = Block()
        if isinstance(query, exp.Union):
            parts = [p for side in (query.this, query.expression) for p in _summands(side)]
            rows = self._added(parts, sight, block)
            return self._keyed(rows, block, query)
        read = [self.query(side, sight, block) for side in (query.this, query.expression)]
        width = len(read[0].columns)
        self._check_width(query.expression, len(read[1].columns), width)
        sides = []
        for rows, counts in zip(read, (("1", "0"), ("0", "1")), strict=True):
            side = _projected(rows, block)
            tallies = tuple((block.fresh("p"), exp.Literal.number(n)) for n in counts)
            sides.append(Projected(side.below, (*side.outputs, *tallies)))
        columns = tuple(block.fresh("p") for _ in range(width + 2))
        tallies_ = (Aggregate("l", "tally", columns[-2]), Aggregate("r", "tally", columns[-1]))
        keys = tuple((f"g{i}", c) for i, c in enumerate(columns[:width]))
        outputs = tuple((f"c{i}", f"g{i}") for i in range(width))
        times = _TIMES[query.key, bool(query.args.get("distinct"))]
        grouped = Grouped(keys, tallies_, outputs, times)
        operator = finished(Added(tuple(sides), columns), frozenset(columns))
        return self._made(operator, block, grouped, query), read[0].columns

    def _distinct(self, query: exp.Select, sight: Sight) -> tuple[Draft, tuple[Named, ...]]:
        block = Block()
        plain_ = query.copy()
        plain_.set("distinct", None)
        plain_.set("with_", None)
        return self._keyed(self.query(plain_, sight, block), block, query)

    def _keyed(
        self, rows: Rows, block: Block, query: exp.Expression
    ) -> tuple[Draft, tuple[Named, ...]]:
        """Every row once."""
        keys = tuple((f"g{i}", _sql(c.value)) for i, c in enumerate(rows.columns))
        outputs = tuple((f"c{i}", f"g{i}") for i in range(len(keys)))
        operator = finished(rows.relation, all_names(c.value for c in rows.columns))
        return self._made(operator, block, Grouped(keys, (), outputs), query), rows.columns

    # --- FROM ---

    def _from(self, query: exp.Select, sight: Sight, block: Block) -> Rows:
        clause = query.args.get("from_")
        if clause is None:
            return Rows(NOTHING)
        groups: list[Rows] = []
        current = self._relation(clause.this, sight, block)
        for join in query.args.get("joins") or ():
            if self._is_comma(join):
                groups.append(current)
                current = self._relation(join.this, sight, block)
            else:
                current = self._join(current, join, sight, block)
        groups.append(current)
        return _product(groups)

    def _is_comma(self, join: exp.Join) -> bool:
        return self.source.text[place(join) : place(join) + 1] == ","

    def _relation(self, node: exp.Expression, sight: Sight, block: Block) -> Rows:
        if isinstance(node, exp.Table):
            return self._table(node, sight, block)
        if isinstance(node, exp.Values):
            rows = self._values(node, sight, block)
            rows.scope = self._aliased(_scope_of(rows.columns), node)
            return rows
        if not isinstance(node, exp.Subquery):
            raise self._no_relation(node)
        if isinstance(node.this, (exp.Table, exp.Subquery)) and _joins_of(node.this) is not None:
            return self._bracketed(node, sight, block)
        rows = self.query(node.this, sight, block)
        rows.scope = self._aliased(_scope_of(rows.columns), node)
        return rows

    def _no_relation(self, node: exp.Expression) -> ViewRefused:
        if isinstance(node, exp.Lateral):
            return self.source.refusal("LATERAL_JOIN", place(node), "uses LATERAL in FROM")
        fact = "reads something that is no table"
        return self.source.refusal("TABLE_FUNCTION", place(node), fact)

    def _bracketed(self, node: exp.Subquery, sight: Sight, block: Block) -> Rows:
        """Joins in brackets."""
        inner = node.this
        alone = inner.copy()
        alone.set("joins", None)
        rows = self._relation(alone, sight, block)
        groups = []
        for join in _joins_of(inner) or ():
            if self._is_comma(join):
                groups.append(rows)
                rows = self._relation(join.this, sight, block)
            else:
                rows = self._join(rows, join, sight, block)
        rows = _product([*groups, rows])
        if node.args.get("alias"):
            rows.scope = self._aliased(rows.scope, node)
        return rows

    def _table(self, node: exp.Table, sight: Sight, block: Block) -> Rows:
        if not isinstance(node.this, exp.Identifier):
            name = getattr(node.this, "name", "")
            fact = f'reads the function "{name}"'
            raise self.source.refusal("TABLE_FUNCTION", place(node), fact)
        parts = tuple(part.name for part in node.parts)
        if len(parts) == 1 and parts[0].lower() in sight.ctes:
            rows = self._with_query(parts[0].lower(), sight, block)
        else:
            rows = self._stored(node, parts, block)
        if node.args.get("alias"):
            rows.scope = self._aliased(rows.scope, node)
        return rows

    def _with_query(self, name: str, sight: Sight, block: Block) -> Rows:
        cte, seen = sight.ctes[name]
        if self._share and _is_read_again(cte):
            rows = self._scanned(cte.this, seen, block, id(cte))
        else:
            rows = self.query(cte.this, seen, block)
        rows.scope = self._aliased(_scope_of(rows.columns), cte)
        return rows

    def _stored(self, node: exp.Table, parts: tuple[str, ...], block: Block) -> Rows:
        view = self._view(parts)
        alias = node.alias or parts[-1]
        if view is not None:
            columns = self._world.views[view]
            scan = block.scan(ViewInput(view), len(columns), alias)
            self._check_scans(block, place(node))
            pairs = zip(columns, scan.columns, strict=True)
            visible = [Visible(parts, n, column(c)) for (n, _), c in pairs]
            self.types.update(
                {(id(block), c): t for (_, t), c in zip(columns, scan.columns, strict=True)}
            )
            return Rows(scan, Scope(tuple(visible)))
        relation = find_relation(self.source, parts, place(node), self._world.relations)
        return self._occurrence(relation, parts, alias, block, place(node))

    def _view(self, parts: tuple[str, ...]) -> str | None:
        if len(parts) != 1:
            return None
        if any(
            r.name.source.lower() == parts[0].lower() and not r.name.path
            for r in self._world.relations
        ):
            return None
        return next((v for v in self._world.views if v.lower() == parts[0].lower()), None)

    def _occurrence(
        self, relation: RelationSchema, parts: tuple[str, ...], alias: str, block: Block, at: int
    ) -> Rows:
        unsupported = self._world.unsupported.get(relation.name, {})
        usable_ = [i for i, c in enumerate(relation.columns) if c.name not in unsupported]
        scan = block.scan(
            RelationInput(relation.name), len(relation.columns), alias, usable_[0] if usable_ else 0
        )
        self._check_scans(block, at)
        visible = []
        for i, c in enumerate(relation.columns):
            name = scan_column(scan.number, i)
            self.types[id(block), name] = c.type
            visible.append(
                Visible(parts, c.name, column(name), unsupported=unsupported.get(c.name))
            )
        known = {c.name for c in relation.columns}
        visible += [
            Visible(parts, name, exp.Null(), unsupported=kind)
            for name, kind in unsupported.items()
            if name not in known
        ]
        return Rows(scan, Scope(tuple(visible)))

    def _aliased(self, scope: Scope, node: exp.Expression) -> Scope:
        alias = node.args.get("alias")
        if alias is None or alias.this is None:
            return scope.renamed(("",), tuple(c.name for c in alias.columns) if alias else ())
        named = tuple(c.name for c in alias.columns)
        count = len(scope.star(()))
        if named and len(named) != count:
            fact = f'names {len(named)} columns for the {count} of "{alias.name}"'
            way = f'name all {count}, or write "{alias.name}" without names'
            raise self.source.refusal("UNKNOWN_COLUMN", place(node), fact, instead=way)
        return scope.renamed((alias.name,), named)

    # --- joins ---

    def _join(self, left: Rows, join: exp.Join, sight: Sight, block: Block) -> Rows:
        if _joins_of(join.this) and not isinstance(join.this, exp.Subquery):
            on = join.args.get("on")
            at = self.source.text.upper().rfind("ON", 0, place(on)) if on else place(join)
            way = "write every ON right behind the JOIN that it belongs to"
            raise self.source.refusal(
                "UNSUPPORTED_SYNTAX",
                at,
                "says ON behind another JOIN",
                instead=way,
                recompute=False,
            )
        right = self._relation(join.this, sight, block)
        kind = _kind(join)
        if kind in ("inner", "cross"):
            return self._inner(left, right, join, sight, block)
        return self._split(kind, left, right, join, sight, block)

    def _inner(self, left: Rows, right: Rows, join: exp.Join, sight: Sight, block: Block) -> Rows:
        scope, conditions = self._merged(left, right, join, "inner")
        rows = Rows(
            joined(left.relation, right.relation),
            left.scope.beside(right.scope),
            (),
            left.beyond + right.beyond,
        )
        rows.require(conditions)
        if join.args.get("on"):
            self._require(join.args["on"], rows, sight, block)
        rows.scope = scope
        return rows

    def _split(
        self, kind: str, left: Rows, right: Rows, join: exp.Join, sight: Sight, block: Block
    ) -> Rows:
        for side in (left, right):
            self._check_beyond(side.beyond)
        if kind in ("right", "full"):
            _pad(left, block)
        if kind in ("left", "full"):
            _pad(right, block)
        scope, conditions = self._merged(left, right, join, kind)
        conditions = [*conditions, *self._on(kind, left, right, join, sight, block)]
        if kind == "right":
            relation = halved("left", right.relation, left.relation, conditions)
        else:
            relation = halved(kind, left.relation, right.relation, conditions)  # type: ignore[arg-type]
        return Rows(relation, left.scope if kind in ("semi", "anti") else scope)

    def _check_beyond(self, conditions: Sequence[exp.Expression]) -> None:
        for condition in conditions:
            fact = "uses a column of the query around it below an outer join"
            way = "compare with columns of the query around in WHERE, outside of outer joins"
            raise self.source.refusal("SUBQUERY", place(condition), fact, instead=way)

    def _on(
        self, kind: str, left: Rows, right: Rows, join: exp.Join, sight: Sight, block: Block
    ) -> list[exp.Expression]:
        """The conditions of ON; EXISTS and IN of one side alone become marks of that side."""
        on = join.args.get("on")
        if on is None:
            return []
        both = left.scope.beside(right.scope)
        found = []
        for part in conjuncts(on):
            asked = [n for n in part.walk() if _asks(n)]
            side = self._side_of(part, left, right, kind) if asked else None
            if side is None:
                found.append(Binder(self.source, both, sight.outer, False).bind(part))
            else:
                found.append(self._marked(part, side, side.scope, sight, block))
        self._check_clock(found, block)
        return found

    def _side_of(self, part: exp.Expression, left: Rows, right: Rows, kind: str) -> Rows:
        for side in (right, left):
            other = left if side is right else right
            seen = bool(list(part.find_all(exp.Column)))
            mine = all(
                bool(side.scope.find(_dotted(c))) or not other.scope.find(_dotted(c))
                for c in part.find_all(exp.Column)
            )
            if mine and seen:
                return side
        asked = next(n for n in part.walk() if _asks(n))
        fact = "has a subquery over both sides of an outer join in ON"
        way = "let the subquery use columns of one side only"
        raise self.source.refusal("SUBQUERY", place(asked), fact, instead=way)

    def _merged(
        self, left: Rows, right: Rows, join: exp.Join, kind: str
    ) -> tuple[Scope, list[exp.Expression]]:
        """The scope of the join, and what USING asks for."""
        using = join.args.get("using") or ()
        if not using:
            return left.scope.beside(right.scope), []
        pairs = [self._key(left.scope, right.scope, word) for word in using]
        conditions: list[exp.Expression] = [
            exp.EQ(this=inside(a.value), expression=inside(b.value)) for a, b in pairs
        ]
        shown = [_shown_key(a, b, kind) for a, b in pairs]
        lefts, rights = [a for a, _ in pairs], [b for _, b in pairs]
        hidden = [replace(b, hidden=True) for b in rights]
        if kind in ("right", "full"):
            hidden = [replace(a, hidden=True) for a in lefts] + hidden
        columns = (*shown, *_without(left.scope, lefts), *_without(right.scope, rights), *hidden)
        return Scope(columns), conditions

    def _key(self, left: Scope, right: Scope, word: exp.Expression) -> tuple[Visible, Visible]:
        named = exp.Column(this=word.copy())
        named.meta["start"] = place(word)
        for side in (left, right):
            Binder(self.source, side).bind(named)
        return left.find((word.name,))[0], right.find((word.name,))[0]

    # --- WHERE and subqueries ---

    def _where(self, query: exp.Select, rows: Rows, sight: Sight, block: Block) -> None:
        clause = query.args.get("where")
        if clause is not None:
            self._require(clause.this, rows, sight, block)

    def _require(self, condition: exp.Expression, rows: Rows, sight: Sight, block: Block) -> None:
        """All parts of the condition; those with subqueries last."""
        parts = list(conjuncts(condition))
        asking = [p for p in parts if any(_asks(n) for n in p.walk())]
        binder = Binder(self.source, rows.scope, sight.outer, sight.reach)
        simple = [binder.bind(p) for p in parts if p not in asking]
        self._check_clock(simple, block)
        rows.require(simple)
        for part in asking:
            asked, negative = negated(part)
            if isinstance(asked, (exp.Exists, exp.In)) and _asks(asked):
                self._semi(asked, negative, rows, sight, block)
            else:
                rows.require([self._marked(part, rows, rows.scope, sight, block)])

    def _semi(
        self, asked: exp.Expression, negative: bool, rows: Rows, sight: Sight, block: Block
    ) -> None:
        """EXISTS and IN as a condition of its own: a semi or an anti join."""
        inner, conditions = self._subquery(asked, rows, rows.scope, sight, block)
        equal = self._compared(asked, inner, rows, sight, block)
        if equal is not None:
            sure = [*conjuncts(equal)]
            unsure = exp.Is(this=exp.Paren(this=equal), expression=exp.Boolean(this=False))
            conditions += [exp.Not(this=unsure)] if negative else sure
        self._check_reach(conditions, rows, inner)
        kind = "anti" if negative else "semi"
        rows.relation = halved(kind, rows.relation, inner.relation, conditions)  # type: ignore[arg-type]

    def _marked(
        self,
        part: exp.Expression,
        rows: Rows,
        scope: Scope,
        sight: Sight,
        block: Block,
        binder: Binder | None = None,
    ) -> exp.Expression:
        """The expression with marks in the place of its subqueries; they are joined to the rows."""
        used = binder or Binder(self.source, scope, sight.outer, sight.reach)

        def mark(asked: exp.Expression) -> exp.Expression:
            return self._mark(asked, rows, scope, sight, block, used)

        found = replace(used, subquery=mark).bind(part)
        self._check_clock([found], block)
        return found

    def _mark(
        self,
        asked: exp.Expression,
        rows: Rows,
        scope: Scope,
        sight: Sight,
        block: Block,
        binder: Binder,
    ) -> exp.Expression:
        key = (id(rows), written(asked))
        if key not in self._marks:
            self._marks[key] = self._new_mark(asked, rows, scope, sight, block, binder), rows
        return self._marks[key][0].copy()

    def _new_mark(
        self,
        asked: exp.Expression,
        rows: Rows,
        scope: Scope,
        sight: Sight,
        block: Block,
        binder: Binder,
    ) -> exp.Expression:
        met = self._mark_join(asked, rows, scope, sight, block, binder, unknown=False)
        if isinstance(asked, exp.Exists):
            return met
        unknown = self._mark_join(asked, rows, scope, sight, block, binder, unknown=True)
        return exp.Case(
            ifs=[
                exp.If(this=met, true=exp.Boolean(this=True)),
                exp.If(this=unknown, true=exp.Null()),
            ],
            default=exp.Boolean(this=False),
        )

    def _mark_join(
        self,
        asked: exp.Expression,
        rows: Rows,
        scope: Scope,
        sight: Sight,
        block: Block,
        binder: Binder,
        *,
        unknown: bool,
    ) -> exp.Expression:
        """A mark: whether a row of the subquery is met (or, `unknown`, perhaps met)."""
        inner, conditions = self._subquery(asked, rows, scope, sight, block)
        equal = self._compared(asked, inner, rows, sight, block, binder)
        if equal is not None and unknown:
            conditions.append(exp.Is(this=exp.Paren(this=equal), expression=exp.Null()))
        elif equal is not None:
            conditions += conjuncts(equal)
        self._check_reach(conditions, rows, inner)
        mark = block.fresh("m")
        rows.relation = halved("mark", rows.relation, inner.relation, conditions, mark)
        return column(mark)

    def _subquery(
        self, asked: exp.Expression, rows: Rows, scope: Scope, sight: Sight, block: Block
    ) -> tuple[Rows, list[exp.Expression]]:
        query = asked.this if isinstance(asked, exp.Exists) else asked.args["query"]
        query = unwrapped(query)
        if (
            isinstance(query, exp.Select)
            and query.args.get("distinct")
            and not self._is_grouped(query)
        ):
            query = query.copy()
            query.set("distinct", None)
        inner = self.query(query, sight.within(scope), block)
        return inner, list(inner.beyond)

    def _compared(
        self,
        asked: exp.Expression,
        inner: Rows,
        rows: Rows,
        sight: Sight,
        block: Block,
        binder: Binder | None = None,
    ) -> exp.Expression | None:
        """What IN compares."""
        if not isinstance(asked, exp.In):
            return None
        used = binder or Binder(self.source, rows.scope, sight.outer, sight.reach)
        left = unbracketed(asked.this)
        cells = left.expressions if isinstance(left, exp.Tuple) else [left]
        if len(cells) != len(inner.columns):
            fact = f"compares {len(cells)} values with {len(inner.columns)} columns"
            raise self.source.refusal("SUBQUERY", place(asked.args["query"]), fact, instead="")
        return conjunction(
            exp.EQ(this=inside(replace(used, subquery=None).whole(a)), expression=inside(b.value))
            for a, b in zip(cells, inner.columns, strict=True)
        )

    def _check_reach(self, conditions: Sequence[exp.Expression], rows: Rows, inner: Rows) -> None:
        known = {*rows.relation.columns, *inner.relation.columns}
        for condition in conditions:
            if not names(condition) <= known:
                fact = "uses a column of a query further out"
                raise self.source.refusal("SUBQUERY", place(condition), fact)

    # --- SELECT ---

    def _selected(
        self, query: exp.Select, rows: Rows, sight: Sight, block: Block
    ) -> tuple[Named, ...]:
        """The columns of a query without groups."""
        found: list[Named] = []
        aliases: dict[str, exp.Expression] = {}
        binder = Binder(self.source, rows.scope, sight.outer, sight.reach, aliases=aliases.get)
        for item in items(self.source, query):
            if item.star is not None:
                found += [
                    Named(c.name, usable(self.source, c, item.at), item.at)
                    for c in self._star(item, rows.scope)
                ]
                continue
            value = self._marked(item.value, rows, rows.scope, sight, block, binder)
            if item.alias:
                aliases.setdefault(item.alias.lower(), value)
            found.append(Named(item.alias or own_name(self.source, item), value, item.at))
        return tuple(found)

    def _star(self, item: Item, scope: Scope) -> list[Visible]:
        return item.stars(self.source, scope)

    # --- GROUP BY ---

    def _is_grouped(self, query: exp.Select) -> bool:
        if query.args.get("group") or query.args.get("having"):
            return True
        return any(_has_aggregate(e) for e in query.expressions)

    def _grouped(self, query: exp.Select, sight: Sight) -> tuple[Draft, tuple[Named, ...]]:
        from steadyview.views.grouped import GroupedQuery

        return GroupedQuery(self, query, sight).draft()

    def read_from(self, query: exp.Select, sight: Sight, block: Block) -> Rows:
        """FROM and WHERE of a grouped query."""
        rows = self._from(query, sight, block)
        self._where(query, rows, sight, block)
        return rows

    def mark(
        self, part: exp.Expression, rows: Rows, sight: Sight, block: Block, binder: Binder
    ) -> exp.Expression:
        """See `_marked`."""
        return self._marked(part, rows, rows.scope, sight, block, binder)

    def ask(
        self, part: exp.Expression, rows: Rows, sight: Sight, block: Block, binder: Binder
    ) -> exp.Expression:
        """The expression of a block over groups, with marks for its subqueries."""
        return self._marked(part, rows, rows.scope, sight, block, binder)

    def made(
        self, operator: object, block: Block, grouped: Grouped | None, query: exp.Expression
    ) -> Draft:
        """See `_made`."""
        return self._made(operator, block, grouped, query)

    def _check_clock(self, conditions: Sequence[exp.Expression], block: Block) -> None:
        from steadyview.views.clock import check_clock

        for condition in conditions:
            check_clock(
                self.source, condition, {n: t for (b, n), t in self.types.items() if b == id(block)}
            )


def _has_aggregate(node: exp.Expression) -> bool:
    from steadyview.views.grouped import aggregates_in

    return bool(aggregates_in(node))


def _sql(value: exp.Expression) -> str:
    return written(unbracketed(value))


def _adds(query: exp.SetOperation) -> bool:
    return isinstance(query, exp.Union) and not query.args.get("distinct")


def _parts_of(query: exp.Expression) -> list[exp.Expression]:
    """The summands of UNION ALL, nested ones too."""
    bare = unwrapped(query)
    if isinstance(bare, exp.Union) and _adds(bare) and not bare.args.get("with_"):
        return [*_parts_of(bare.this), *_parts_of(bare.expression)]
    if bare is query or not isinstance(bare, exp.Union):
        return (
            [query]
            if not isinstance(query, exp.Union)
            else [*_parts_of(query.this), *_parts_of(query.expression)]
        )
    return [query]


def _summands(query: exp.Expression) -> list[exp.Expression]:
    """The summands of a UNION whose duplicates go anyway."""
    bare = unwrapped(query)
    if isinstance(bare, exp.Union) and not bare.args.get("with_"):
        return [*_summands(bare.this), *_summands(bare.expression)]
    return [query]


def _projected(rows: Rows, block: Block) -> Projected:
    outputs = tuple((block.fresh("p"), c.value) for c in rows.columns)
    return Projected(rows.relation, outputs)


def _product(groups: Sequence[Rows]) -> Rows:
    first, *others = groups
    for other in others:
        relation = joined(first.relation, other.relation)
        first = Rows(relation, first.scope.beside(other.scope), beyond=first.beyond + other.beyond)
    return first


def _scope_of(columns: Sequence[Named]) -> Scope:
    return Scope(tuple(Visible(("",), c.name, c.value) for c in columns))


def _joins_of(node: exp.Expression) -> list[exp.Join] | None:
    """The joins inside brackets; empty for a bracketed table, None for a query."""
    found = node.args.get("joins")
    return list(found or []) if found or isinstance(node, exp.Table) else None


def _pad(rows: Rows, block: Block) -> None:
    """Columns that are computed must be NULL in a padded row: they are made below the join."""
    fresh: list[tuple[str, exp.Expression]] = []
    columns = []
    for c in rows.scope.columns:
        if plain(c.value) is None:
            fresh.append((block.fresh("p"), c.value))
            columns.append(replace(c, value=column(fresh[-1][0])))
        else:
            columns.append(c)
    if fresh:
        kept = tuple((n, column(n)) for n in rows.relation.columns)
        rows.relation = Projected(rows.relation, (*kept, *fresh))
        rows.scope = Scope(tuple(columns))


def _kind(join: exp.Join) -> str:
    side, kind = (join.side or "").lower(), (join.kind or "").lower()
    if kind in ("semi", "anti"):
        return str(kind)
    return str(side or ("cross" if kind == "cross" else "inner"))


def _shown_key(left: Visible, right: Visible, kind: str) -> Visible:
    if kind == "right":
        return right
    if kind != "full":
        return left
    both = exp.Anonymous(this="COALESCE", expressions=[inside(left.value), inside(right.value)])
    return Visible((), left.name, both)


def _without(scope: Scope, keys: list[Visible]) -> list[Visible]:
    return [c for c in scope.columns if all(c is not key for key in keys)]


def _dotted(node: exp.Column) -> tuple[str, ...]:
    return tuple(part.name for part in node.parts)


def _asks(node: exp.Expr) -> bool:
    """Whether the node is EXISTS or IN of a query."""
    if isinstance(node, exp.In):
        return node.args.get("query") is not None
    return isinstance(node, exp.Exists) and isinstance(unwrapped(node.this), exp.Query)


def _is_read_again(cte: exp.CTE) -> bool:
    """Whether the WITH query may be read at more than one place."""
    owner = cte.parent.parent if cte.parent else None
    if owner is None:
        return False
    tables = [
        t for t in owner.find_all(exp.Table) if not t.db and t.name.lower() == cte.alias.lower()
    ]
    return len(tables) > 1
