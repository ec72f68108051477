"""A view as what it offers: its text in flat form, and the names and types of its columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from sqlglot import exp

from steadyview.changes import RelationName, RelationSchema
from steadyview.errors import ViewRefused
from steadyview.views.flat import FlatQuery, flat_query
from steadyview.views.fusing import fused
from steadyview.views.parse import ViewText
from steadyview.views.queries import Reader
from steadyview.views.reading import read_query
from steadyview.views.rows import Readable, Sight
from steadyview.views.source_text import SourceText


@dataclass(frozen=True)
class OfferedView:
    """A view that may answer: its SELECT, the tables that it reads, its columns and their types.

    `by_rows`: it is kept by its changes, so that its rows are exactly what its text says. A view
    that is recomputed answers its own text alone.
    """

    name: str
    text: str
    relations: tuple[RelationSchema, ...]
    columns: tuple[tuple[str, str], ...]
    by_rows: bool = True

    @property
    def tables(self) -> frozenset[RelationName]:
        """What it reads."""
        return frozenset(r.name for r in self.relations)

    @property
    def source(self) -> SourceText:
        """Its SELECT as tokens."""
        return ViewText(self.name, self.text).source()

    @cached_property
    def flat(self) -> FlatQuery | None:
        """Its flat form; None if it has none."""
        return _flat(self.text, self.relations)


@lru_cache(maxsize=1_000)
def _flat(text: str, relations: tuple[RelationSchema, ...]) -> FlatQuery | None:
    try:
        source = ViewText("view", text).source()
        return flat_form(source, read_query(source), relations)[0]
    except ViewRefused:
        return None


def flat_form(
    source: SourceText,
    tree: exp.Expression,
    relations: Sequence[RelationSchema],
    *,
    asked: bool = False,
) -> tuple[FlatQuery | None, tuple[str, ...]]:
    """The flat form of a query, if it has one, and what its columns are called as far as we know.

    ViewRefused where the text is outside what views are read for. `asked`: it is no view's.
    """
    reader = Reader(source, Readable(relations, {}, {}), share=False, asked=asked)
    draft, columns = reader.draft(tree, Sight())
    drafts = fused((*reader.drafts.made, draft))
    flat = flat_query(drafts[0]) if len(drafts) == 1 else None
    return flat, tuple(column.name for column in columns)
