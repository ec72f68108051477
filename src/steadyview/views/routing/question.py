"""A query as what is looked for: its flat form, and what is done to its rows at the end.

ORDER BY and LIMIT stand apart: they are done to the answer, wherever it comes from. What is ordered
by is a column of the answer, by its place or name, or else an expression that is computed beside
the answer's columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from steadyview.changes import RelationName, RelationSchema
from steadyview.errors import ViewRefused
from steadyview.views.dialect import written
from steadyview.views.flat import FlatQuery
from steadyview.views.parse import ViewText
from steadyview.views.reading import TAIL, read_query, without_tail
from steadyview.views.routing.offers import flat_form
from steadyview.views.routing.reasons import CannotAnswer
from steadyview.views.source_text import SourceText
from steadyview.views.trees import canonical, place, unbracketed

_NAME = "the query"


@dataclass(frozen=True)
class Ordering:
    """One thing that is ordered by: output number `output`, from 0, or a value beside them.

    Both None: a value that is not known.
    """

    output: int | None
    beside: exp.Expression | None
    suffix: str


@dataclass(frozen=True)
class RoutingQuestion:
    """A query over tables of sources alone.

    `names` are what its columns are called. `flat` is its flat form without ORDER BY and LIMIT;
    None if it has none, and `why` tells. `limits`: LIMIT and OFFSET. `rows_end`: where its text
    ends without all these; None if they are not plain.
    """

    source: SourceText
    relations: tuple[RelationSchema, ...]
    names: tuple[str, ...]
    flat: FlatQuery | None = None
    why: str = ""
    orderings: tuple[Ordering, ...] = ()
    limits: str = ""
    rows_end: int | None = None

    @property
    def tables(self) -> frozenset[RelationName]:
        """What it reads."""
        return frozenset(r.name for r in self.relations)


def routing_question(
    sql: str, relations: Sequence[RelationSchema], names: Sequence[str]
) -> RoutingQuestion:
    """The query as a question: it reads these tables, Spark calls its columns `names`.

    ViewRefused if it cannot be read.
    """
    source = ViewText(_NAME, sql.strip().rstrip(";").rstrip()).source()
    tree = read_query(source)
    found = RoutingQuestion(source, tuple(relations), tuple(names))
    try:
        found = _with_tail(found, tree)
        return replace(found, flat=_flat(found, tree), orderings=_orderings(found, tree))
    except ViewRefused as refused:
        return replace(found, why=refused.message.replace(f'view "{_NAME}"', "it"))
    except CannotAnswer as cannot:
        return replace(found, why=cannot.why)


def _with_tail(question: RoutingQuestion, tree: exp.Expression) -> RoutingQuestion:
    """With ORDER BY and LIMIT, as far as they are plain."""
    tail = [tree.args[key] for key in TAIL if tree.args.get(key) is not None]
    end = min(map(place, tail), default=len(question.source.text))
    orderings = tuple(
        Ordering(_output(node.this, question.names), None, _suffix(node)) for node in _by(tree)
    )
    return replace(question, limits=_limits(tree), rows_end=end, orderings=orderings)


def _by(tree: exp.Expression) -> list[exp.Ordered]:
    return list(tree.args["order"].expressions) if tree.args.get("order") else []


def _flat(question: RoutingQuestion, tree: exp.Expression) -> FlatQuery:
    if not isinstance(tree, exp.Select):
        raise CannotAnswer("shape", "it is more than one SELECT")
    bare = without_tail(tree)
    found, names = flat_form(question.source, bare, question.relations, asked=True)
    if found is None:
        raise CannotAnswer("shape", "it is more than a join of tables with groups on top")
    _check_columns(question, bare, names)
    return found


def _check_columns(
    question: RoutingQuestion, bare: exp.Expression, names: Sequence[str]
) -> None:
    """CannotAnswer unless a star stands for the columns that it stands for in Spark."""
    starred = any(e.find(exp.Star) and not e.find(exp.Anonymous) for e in bare.expressions)
    same = [n.lower() for n in names] == [n.lower() for n in question.names]
    if len(names) != len(question.names) or (starred and not same):
        raise CannotAnswer("shape", "its columns are others to Spark")


def _orderings(question: RoutingQuestion, tree: exp.Expression) -> tuple[Ordering, ...]:
    """All that is ordered by: by the output that has the value, or by the value beside them."""
    nodes = [n.this for n, o in zip(_by(tree), question.orderings, strict=True) if o.output is None]
    if not nodes:
        return question.orderings
    flat = _flat(question, tree)
    values = iter(_beside(question, without_tail(tree), flat, nodes))
    shown = [canonical(output) for output in flat.outputs]
    found = []
    for ordering in question.orderings:
        if ordering.output is not None:
            found.append(ordering)
            continue
        value = next(values)
        output = shown.index(canonical(value)) if canonical(value) in shown else None
        found.append(replace(ordering, output=output, beside=unbracketed(value)))
    return tuple(found)


def _limits(tree: exp.Expression) -> str:
    """LIMIT and OFFSET as they are written again."""
    found = []
    for word in ("limit", "offset"):
        node = tree.args.get(word)
        if node is None:
            continue
        value = node.args.get("expression")
        if not isinstance(node, (exp.Limit, exp.Offset)) or not isinstance(value, exp.Literal):
            raise CannotAnswer("shape", f"its {word.upper()} is no plain number")
        found.append(f"{word.upper()} {written(value)}")
    return " ".join(found)


def _output(node: exp.Expression, names: Sequence[str]) -> int | None:
    """Which output is meant, by its place or its name; None if it is an expression."""
    if isinstance(node, exp.Literal) and str(node.this).isdigit():
        return int(str(node.this)) - 1
    lower = [name.lower() for name in names]
    named = isinstance(node, exp.Column) and not node.table and node.name.lower() in lower
    return lower.index(node.name.lower()) if named else None


def _beside(
    question: RoutingQuestion,
    bare: exp.Expression,
    flat: FlatQuery,
    nodes: Sequence[exp.Expression],
) -> tuple[exp.Expression, ...]:
    """The values of expressions that are ordered by, as if they stood in the SELECT list."""
    if used := _renamed(bare) & {c.name.lower() for n in nodes for c in n.find_all(exp.Column)}:
        raise CannotAnswer("order", f'it orders by an expression over "{min(used)}", a new name')
    wide = bare.copy()
    wide.set("distinct", None)
    wide.set("expressions", [*wide.expressions, *(node.copy() for node in nodes)])
    wider, _ = flat_form(question.source, wide, question.relations, asked=True)
    same_groups = wider is not None and _texts(wider.keys) == _texts(flat.keys)
    if wider is None or not (same_groups or bare.args.get("distinct")):
        raise CannotAnswer("order", "it orders by something outside of its groups")
    shown = _texts(flat.outputs)
    found = wider.outputs[len(flat.outputs) :]
    if bare.args.get("distinct") and not all(canonical(value) in shown for value in found):
        raise CannotAnswer("order", "it orders by something that DISTINCT does not show")
    return found


def _renamed(bare: exp.Expression) -> set[str]:
    """The aliases that are no column's own name."""
    aliases = (e for e in bare.expressions if isinstance(e, exp.Alias))
    return {
        e.alias.lower()
        for e in aliases
        if not (isinstance(e.this, exp.Column) and e.this.name.lower() == e.alias.lower())
    }


def _texts(values: Iterable[exp.Expression]) -> set[str]:
    return {canonical(value) for value in values}


def _suffix(node: exp.Ordered) -> str:
    nulls = "FIRST" if node.args.get("nulls_first") else "LAST"
    return f"{' DESC' if node.args.get('desc') else ''} NULLS {nulls}"
