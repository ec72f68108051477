"""The elements of a SELECT list: expressions with their names, and stars."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from steadyview.nearest import nearest_or_all
from steadyview.views.columns import Scope, VisibleColumn
from steadyview.views.functions import PLANNED
from steadyview.views.source_text import SourceText
from steadyview.views.trees import place


@dataclass(frozen=True)
class Item:
    """One element. `star` is the qualifier of a `*` (empty for a bare one), None for others."""

    value: exp.Expression
    alias: str | None
    at: int
    span: tuple[int, int]
    star: tuple[str, ...] | None = None

    def stars(self, source: SourceText, scope: Scope) -> list[VisibleColumn]:
        """The columns that the star stands for; UNKNOWN_COLUMN if there are none."""
        found = scope.star(self.star or ())
        if not found:
            shown = source.text[slice(*self.span)]
            fact = f'uses "{shown}", which no table in FROM is called'
            tables = {
                f"{c.qualifier[-1]}.*" for c in scope.columns if c.qualifier and c.qualifier[-1]
            }
            way = nearest_or_all(shown, tables)
            raise source.refusal("UNKNOWN_COLUMN", self.at, fact, instead=way)
        return found


def items(source: SourceText, query: exp.Select) -> list[Item]:
    """The elements of the query's list, in order."""
    if not query.expressions:
        raise source.refusal("SYNTAX_ERROR", place(query), "selects nothing")
    return [_item(source, node) for node in query.expressions]


def _item(source: SourceText, node: exp.Expression) -> Item:
    at, stop = node.meta.get("span", (place(node), place(node) + 1))
    if isinstance(node, exp.Aliases):
        raise source.refusal("GENERATOR", at, "gives several names to one expression")
    if not isinstance(node, exp.Alias):
        return Item(node, None, at, (at, stop), _star(node))
    named = node.args["alias"]
    if source.text[place(named)] in "'\"":
        raw = source.text[place(named) : stop]
        way = None
        if raw.startswith('"'):
            inner = raw.strip('"')
            way = (
                f"Spark quotes names with backticks, and texts with double quotes: write `{inner}`"
            )
        fact = f"has {raw} where a column's name was expected"
        raise source.refusal(
            "UNSUPPORTED_SYNTAX", place(named), fact, instead=way, recompute=not way
        )
    return Item(node.this, named.name, at, (at, place(named)))


def _star(node: exp.Expression) -> tuple[str, ...] | None:
    star = node.this if isinstance(node, exp.Column) else node
    if not isinstance(star, exp.Star) or any(star.args.values()):
        return None
    return tuple(part.name for part in node.parts[:-1]) if isinstance(node, exp.Column) else ()


def own_name(source: SourceText, item: Item) -> str:
    """Spark's name for a column without alias, as far as it follows from the text."""
    if isinstance(item.value, exp.Column):
        return str(item.value.name)
    tokens = [t for t in source.tokens if item.span[0] <= t.start < item.span[1]]
    if len(tokens) == 1:
        return tokens[0].value or tokens[0].raw
    text = "".join(f" {t.raw}" if t.spaced else t.raw for t in tokens).strip()
    call = item.value
    if not isinstance(call, exp.Anonymous) or str(call.name).lower() not in PLANNED:
        return text
    return f"{text.partition('(')[0].strip().lower()}({_argument(source, call, text)})"


def _argument(source: SourceText, call: exp.Anonymous, text: str) -> str:
    argument = call.expressions[0] if call.expressions else None
    if isinstance(argument, exp.Star):
        return "1"
    if isinstance(argument, exp.Column):
        return str(argument.name)
    return text.partition("(")[2].rpartition(")")[0].strip()


def starred(found: list[Item]) -> Iterator[Item]:
    """Those that are stars."""
    return (item for item in found if item.star is not None)
