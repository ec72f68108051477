"""From a view's text to its plan before types are known, or to the reason why there is none."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from sqlglot import exp

from steadyview.changes import RelationName, RelationSchema
from steadyview.plans.draft import PlanDraft
from steadyview.views.fusing import fused
from steadyview.views.parse import ViewText
from steadyview.views.queries import Reader
from steadyview.views.reading import read_query
from steadyview.views.rows import Named, Readable, Sight
from steadyview.views.source_text import SourceText
from steadyview.views.trees import place

_RESERVED = re.compile(
    r"_(count|cn|time|seq|tx|g\d+|nonnull_\d+|sum_\d+|visible_(sum|avg)_\d+)", re.IGNORECASE
)


def plan_view(
    view: ViewText,
    relations: Sequence[RelationSchema],
    unsupported: Mapping[RelationName, Mapping[str, str]],
    views: Mapping[str, Sequence[tuple[str, str]]],
) -> PlanDraft:
    """The drafts of the view's nodes, its own last; ViewRefused if it cannot be maintained.

    `unsupported` names columns whose values cannot be kept, with their types at the source;
    `views` has the columns and types of the project's other views.
    """
    source = view.source()
    reader = Reader(source, Readable(relations, unsupported, views))
    draft, columns = reader.draft(read_query(source), Sight())
    check_names(source, columns)
    drafts = fused((*reader.drafts.made, draft))
    return PlanDraft(drafts, tuple(c.name for c in columns))


def views_read(view: ViewText, names: Collection[str]) -> list[str]:
    """Those of the views called `names` that the view's text reads, in the order of the text.

    >>> views_read(ViewText("v", "WITH a AS (SELECT 1) SELECT * FROM a JOIN b JOIN s.c"), "abc")
    ['b']
    """
    known = {name.lower(): name for name in names}
    tree = read_query(view.source(), pipes=True)
    ctes = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    tables = [t for t in tree.find_all(exp.Table) if not t.args.get("db")]
    tables.sort(key=lambda t: int(t.this.meta.get("start", 0)))
    read = [t.name.lower() for t in tables]
    return list(dict.fromkeys(known[n] for n in read if n in known and n not in ctes))


def with_view_renamed(view: ViewText, old: str, new: str) -> str:
    """The view's SELECT once the view that it knows as `old` is called `new`.

    >>> with_view_renamed(ViewText("v", "SELECT a.x FROM a JOIN a AS b ON b.x = a.x"), "a", "c")
    'SELECT a.x FROM c AS a JOIN c AS b ON b.x = a.x'
    """
    source, text = view.source(), view.select
    for table in sorted(_tables_read(view, old), key=place, reverse=True):
        token = next(t for t in source.tokens if t.start == place(table))
        instead = new if table.alias else f"{new} AS {token.raw}"
        text = text[: token.start] + instead + text[token.stop :]
    return text


def places_read(view: ViewText, name: str) -> list[tuple[int, int]]:
    r"""Where the view's text reads the view called `name`: lines and columns of its file.

    >>> places_read(ViewText("v", "SELECT * FROM a\nJOIN A AS b"), "a")
    [(1, 15), (2, 6)]
    """
    source = view.source()
    return sorted(source.place(place(table)) for table in _tables_read(view, name))


def _tables_read(view: ViewText, name: str) -> list[exp.Table]:
    """The tables in the view's text that mean the view called `name`."""
    if not views_read(view, [name]):
        return []
    tables = [t for t in read_query(view.source()).find_all(exp.Table) if not t.args.get("db")]
    return [t for t in tables if t.name.lower() == name.lower()]


def check_names(source: SourceText, columns: Sequence[Named]) -> None:
    """DUPLICATE_NAME or RESERVED_NAME at the first column that cannot be called so."""
    seen: set[str] = set()
    for column in columns:
        name = column.name.lower()
        if name in seen:
            fact = f'has two columns called "{column.name}"'
            raise source.refusal("DUPLICATE_NAME", column.at, fact)
        if _RESERVED.fullmatch(name):
            raise source.refusal("RESERVED_NAME", column.at, f'has a column called "{name}"')
        seen.add(name)
