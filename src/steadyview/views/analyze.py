"""From a view's text to the flat definition that the papers' algorithms keep, if it has one.

    over one occurrence            -> that occurrence's filter
    `column = column` over two     -> an equality
    anything else (and constants)  -> a residual

The AND of all filters, equalities and residuals is the AND of all ON, USING and WHERE.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from sqlglot import exp

from steadyview.changes import RelationName, RelationSchema
from steadyview.errors import ViewRefused
from steadyview.plans.aggregates import Grouped
from steadyview.plans.draft import Draft, RelationInput
from steadyview.plans.project import Project
from steadyview.views.definition import (
    Argument,
    AverageCall,
    Definition,
    EqualColumns,
    Grouping,
    Occurrence,
    Output,
    Residual,
)
from steadyview.views.dialect import written
from steadyview.views.flat import conditions, is_flat
from steadyview.views.fusing import expression, fused
from steadyview.views.parse import ViewText
from steadyview.views.plan import check_names
from steadyview.views.queries import Reader
from steadyview.views.reading import read_query
from steadyview.views.rewrite import averages_in
from steadyview.views.rows import Named, Readable, Sight
from steadyview.views.source_text import SourceText
from steadyview.views.trees import column, place, substituted, unbracketed

_COLUMN = re.compile(r"t(\d+)_c(\d+)")


def analyze(
    view: ViewText,
    relations: Sequence[RelationSchema],
    unsupported: Mapping[RelationName, Mapping[str, str]] | None = None,
    other_views: Collection[str] = (),
) -> Definition:
    """The view's definition over the watched `relations`.

    ViewRefused if it cannot be maintained, or with ALGORITHM_SHAPE if it is no flat join of source
    relations, perhaps with COUNT, SUM and AVG on top.
    """
    source = view.source()
    world = Readable(relations, unsupported or {}, dict.fromkeys(other_views, ()))
    tree = read_query(source)
    _check_views(source, tree, world)
    reader = Reader(source, world, share=False)
    draft, columns = reader.draft(tree, Sight())
    check_names(source, columns)
    drafts = fused((*reader.drafts.made, draft))
    if len(drafts) > 1 or not _is_flat(drafts[0]):
        raise _not_flat(source, tree)
    return _Defining(view, drafts[0], reader, columns, relations).definition()


def _check_views(source: SourceText, tree: exp.Expression, world: Readable) -> None:
    known = {name.lower() for name in world.views} - {
        c.alias.lower() for c in tree.find_all(exp.CTE)
    }
    sources = {r.name.source.lower() for r in world.relations if not r.name.path}
    for table in tree.find_all(exp.Table):
        name = table.name.lower()
        if not table.db and name in known - sources:
            raise _shape(source, place(table.this), f'reads the view "{table.name}"')


def _not_flat(source: SourceText, tree: exp.Expression) -> ViewRefused:
    kinds = (exp.SetOperation, exp.Having, exp.Exists, exp.In, exp.Values)
    found = [n for n in tree.find_all(*kinds) if not isinstance(n, exp.In) or n.args.get("query")]
    found += [j for j in tree.find_all(exp.Join) if j.side or j.kind in ("SEMI", "ANTI")]
    at = min((place(node) for node in found), default=0)
    return _shape(source, at, "is more than a join of tables with COUNT, SUM and AVG on top")


def _shape(source: SourceText, at: int, fact: str) -> ViewRefused:
    return source.refusal("ALGORITHM_SHAPE", at, fact)


def _is_flat(draft: Draft) -> bool:
    return is_flat(draft) and (draft.grouped is None or _is_summed(draft.grouped))


def _is_summed(grouped: Grouped) -> bool:
    kept = all(a.function in ("count", "sum", "avg") for a in grouped.aggregates)
    return kept and grouped.having is None


class _Defining:
    """Takes a flat draft apart."""

    def __init__(
        self,
        view: ViewText,
        draft: Draft,
        reader: Reader,
        columns: Sequence[Named],
        relations: Sequence[RelationSchema],
    ) -> None:
        self._view = view
        self._draft = draft
        self._aliases = next(b.aliases for o, b in reader.blocks if o is draft.block)
        self._averaged = reader.averages
        self._columns = columns
        self._known = {r.name: r for r in relations}
        self._filters: dict[int, list[str]] = {}
        self._equalities: dict[EqualColumns, None] = {}
        self._residuals: list[Residual] = []

    def definition(self) -> Definition:
        for condition in conditions(self._draft.block):
            self._sort(condition)
        grouping, outputs = self._grouping()
        return Definition(
            name=self._view.name,
            text=self._view.select,
            level=self._view.level,
            occurrences=tuple(self._occurrences()),
            equalities=tuple(
                sorted(self._equalities, key=lambda e: (e.left, e.right, e.left_column))
            ),
            residuals=tuple(self._residuals),
            outputs=tuple(
                Output(c.name, sql) for c, sql in zip(self._columns, outputs, strict=True)
            ),
            grouping=grouping,
            properties=dict(self._view.properties),
        )

    def _occurrences(self) -> Iterator[Occurrence]:
        used = self._used()
        for number, read in enumerate(self._draft.inputs):
            assert isinstance(read, RelationInput)
            filters = self._filters.get(number)
            yield Occurrence(
                number,
                self._known[read.relation],
                self._aliases[number],
                tuple(sorted(used.get(number, ()))),
                " AND ".join(f"({f})" for f in filters) if filters else None,
            )

    def _used(self) -> dict[int, set[int]]:
        """The columns that are spoken of; a scan may have one that is not."""
        grouped = self._draft.grouped
        texts = list(map(written, conditions(self._draft.block)))
        if grouped is not None:
            texts += [sql for _, sql in grouped.keys]
            texts += [a.argument for a in grouped.aggregates if a.argument is not None]
        elif isinstance(self._draft.block, Project):
            texts += [sql for _, sql in self._draft.block.outputs]
        used: dict[int, set[int]] = {}
        for text in texts:
            for found in expression(text).find_all(exp.Column):
                if match := _COLUMN.fullmatch(found.name):
                    used.setdefault(int(match[1]), set()).add(int(match[2]))
        return used

    def _sort(self, condition: exp.Expression) -> None:
        found = [_COLUMN.fullmatch(c.name) for c in condition.find_all(exp.Column)]
        occurrences = frozenset(int(m[1]) for m in found if m)
        equality = _equality(condition)
        if len(occurrences) == 1:
            self._filters.setdefault(min(occurrences), []).append(_stored(condition))
        elif equality:
            self._equalities[equality] = None
        else:
            self._residuals.append(Residual(_stored(condition), occurrences))

    def _grouping(self) -> tuple[Grouping | None, list[str]]:
        grouped = self._draft.grouped
        if grouped is None:
            assert isinstance(self._draft.block, Project)
            return None, [_stored(expression(sql)) for _, sql in self._draft.block.outputs]
        arguments = list(dict.fromkeys(a.argument for a in grouped.aggregates if a.argument))
        summed = {a.argument for a in grouped.aggregates if a.function in ("sum", "avg")}
        names: dict[str, exp.Expression] = {
            name: column(f"_g{i}") for i, (name, _) in enumerate(grouped.keys)
        }
        for a in grouped.aggregates:
            number = arguments.index(a.argument) if a.argument else 0
            state = "_count" if a.argument is None else f"_nonnull_{number}"
            names[a.name] = column(
                state if a.function == "count" else f"_visible_{a.function}_{number}"
            )
        outputs = [
            written(unbracketed(substituted(expression(sql), names))) for _, sql in grouped.outputs
        ]
        keys = tuple(_stored(expression(sql)) for _, sql in grouped.keys)
        kept = tuple(Argument(_stored(expression(a)), a in summed) for a in arguments)
        return Grouping(keys, kept, self._averages(arguments)), outputs

    def _averages(self, arguments: list[str]) -> tuple[AverageCall, ...]:
        """Where the text has averages, each with the number of its argument."""
        found = averages_in(self._view) if self._averaged else ()
        return tuple(
            AverageCall(a.call, a.argument, arguments.index(self._averaged[a.call[0]]))
            for a in found
            if self._averaged.get(a.call[0]) in arguments
        )


def _stored(bound: exp.Expression) -> str:
    """The expression over stored names: `t0.c1` for `t0_c1`."""
    copy = unbracketed(bound).copy()
    for found in [copy] if isinstance(copy, exp.Column) else list(copy.find_all(exp.Column)):
        match = _COLUMN.fullmatch(found.name)
        if match:
            found.set("this", exp.Identifier(this=f"c{match[2]}", quoted=False))
            found.set("table", exp.Identifier(this=f"t{match[1]}", quoted=False))
    return written(copy)


def _equality(condition: exp.Expression) -> EqualColumns | None:
    if not isinstance(condition, exp.EQ):
        return None
    sides = [unbracketed(condition.this), unbracketed(condition.expression)]
    found = [_COLUMN.fullmatch(s.name) if isinstance(s, exp.Column) else None for s in sides]
    if found[0] is None or found[1] is None:
        return None
    (a, a_column), (b, b_column) = sorted((int(m[1]), int(m[2])) for m in found if m)
    return EqualColumns(a, a_column, b, b_column)
