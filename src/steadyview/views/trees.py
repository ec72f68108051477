"""Expressions as sqlglot's trees: where they stand, which columns they name, what takes a place.

A *bound* expression speaks of a block's columns alone, by their plain names (`t0_c1`, `p3`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from sqlglot import exp

from steadyview.views.dialect import Spelled, bracketed

_SINGLE = (
    exp.Column,
    exp.Literal,
    exp.Anonymous,
    exp.Cast,
    exp.TryCast,
    exp.Paren,
    exp.Null,
    exp.Boolean,
    exp.Bracket,
    exp.Dot,
    exp.Case,
    Spelled,
)


def place(node: exp.Expr) -> int:
    """The offset where the node begins, as far as it is known: 0 where nothing is."""
    own = node.meta.get("start")
    if own is not None:
        return int(own)
    known = [int(n.meta["start"]) for n in node.walk() if "start" in n.meta]
    return min(known, default=0)


def column(name: str) -> exp.Column:
    """A column of a block."""
    return exp.Column(this=exp.Identifier(this=name, quoted=False))


def names(node: exp.Expression) -> frozenset[str]:
    """The columns that a bound expression speaks of."""
    return frozenset(c.name for c in node.find_all(exp.Column))


def all_names(nodes: Iterable[exp.Expression]) -> frozenset[str]:
    """Those of all."""
    return frozenset().union(*(names(node) for node in nodes))


def plain(node: exp.Expression) -> str | None:
    """The column's name, if the expression is nothing but a column."""
    bare = unbracketed(node)
    return bare.name if isinstance(bare, exp.Column) else None


def unbracketed(node: exp.Expression) -> exp.Expression:
    """Without brackets around all of it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def inside(node: exp.Expression) -> exp.Expression:
    """A copy that may stand inside another expression."""
    copy = unbracketed(node).copy()
    return copy if isinstance(copy, _SINGLE) else exp.Paren(this=copy)


def substituted(node: exp.Expression, values: Mapping[str, exp.Expression]) -> exp.Expression:
    """A copy of a bound expression with other expressions in the place of columns."""
    if isinstance(node, exp.Column):
        return values[node.name].copy() if node.name in values else node.copy()
    copy = node.copy()
    for found in list(copy.find_all(exp.Column)):
        if found.name in values:
            found.replace(inside(values[found.name]))
    return copy


def conjuncts(node: exp.Expression) -> Iterator[exp.Expression]:
    """The parts of a condition that all must hold."""
    bare = unbracketed(node)
    if isinstance(bare, exp.And):
        yield from conjuncts(bare.this)
        yield from conjuncts(bare.expression)
    else:
        yield bare


def negated(node: exp.Expression) -> tuple[exp.Expression, bool]:
    """What stands behind all NOTs, and whether it is negated."""
    bare, negative = unbracketed(node), False
    while isinstance(bare, exp.Not):
        bare, negative = unbracketed(bare.this), not negative
    return bare, negative


def conjunction(parts: Iterable[exp.Expression]) -> exp.Expression | None:
    """All of them, None for none."""
    found: exp.Expression | None = None
    for part in parts:
        found = inside(part) if found is None else exp.And(this=found, expression=inside(part))
    return unbracketed(found) if isinstance(found, exp.Paren) else found


def canonical(node: exp.Expression) -> str:
    """Equal for expressions that differ in brackets, blanks and the case of functions only."""
    copy = unbracketed(node).copy()
    for call in list(copy.find_all(exp.Anonymous)):
        if isinstance(call.this, str):
            call.set("this", call.this.upper())
    for paren in list(copy.find_all(exp.Paren)):
        if paren is not copy:
            paren.replace(paren.this)
    return bracketed(copy)


def put_keys(node: exp.Expression, keys: Mapping[str, exp.Expression]) -> exp.Expression:
    """A copy with `keys[canonical]` in the place of every largest part that is written so."""
    if canonical(node) in keys:
        return keys[canonical(node)].copy()
    copy = node.copy()
    for child in list(copy.iter_expressions()):
        if isinstance(child, (exp.Identifier, exp.DataType)):
            continue
        child.replace(put_keys(child, keys))
    return copy
