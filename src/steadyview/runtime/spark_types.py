"""What Spark says about a view's types: asked once, then remembered in the catalog.

So a view that has not changed since it was last planned needs no Spark to be planned again. The
digest names all that the answer depends on: the expressions, the types of the columns they use, and
Spark's version. A refusal is an answer too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from steadyview.catalog.typed import Typed
from steadyview.changes import RelationSchema
from steadyview.errors import ViewRefused
from steadyview.views.definition import Definition, Occurrence, Types
from steadyview.views.parse import ViewText
from steadyview.views.rewrite import with_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_REFUSAL = ("code", "message", "detail", "hint", "line", "column")


class SparkTypes:
    """Types of views. `session` starts Spark if it does not run yet: called only if need be."""

    def __init__(self, session: Callable[[], SparkSession], remembered: Typed) -> None:
        self._session = session
        self._remembered = remembered

    def of(self, definition: Definition) -> Types:
        """The types of a view that is kept incrementally; ViewRefused if Spark rejects it."""

        def ask() -> Types:
            from steadyview.engine.analysis import typed

            return typed(self._session(), definition)

        return self._answered(_facts(definition), ask)

    def of_text(self, text: ViewText, used: Sequence[RelationSchema]) -> Types:
        """The types of a view that is recomputed from its text; ViewRefused if Spark rejects it."""

        def ask() -> Types:
            from steadyview.engine.analysis import output_types

            names = {r.name: f"sv_empty_{i}" for i, r in enumerate(used)}
            sql = with_tables(text, names, used)
            empty = {names[r.name]: [(c.name, c.type) for c in r.columns] for r in used}
            return Types(output_types(self._session(), text.name, sql, empty))

        columns = [[str(r.name), [(c.name, c.type) for c in r.columns]] for r in used]
        return self._answered([text.name, text.select, columns], ask)

    def _answered(self, facts: list[Any], ask: Callable[[], Types]) -> Types:
        digest = hashlib.sha256(json.dumps([version("pyspark"), facts]).encode()).hexdigest()
        known = self._remembered.find(digest)
        if known is not None:
            return _read(json.loads(known))
        try:
            types = ask()
        except ViewRefused as refusal:
            parts = {p: getattr(refusal, p) for p in _REFUSAL}
            self._remembered.keep(digest, json.dumps({"refused": parts}))
            raise
        self._remembered.keep(digest, json.dumps({"types": asdict(types)}))
        return types


def _facts(definition: Definition) -> list[Any]:
    grouping = definition.grouping
    return [
        definition.name,
        [_occurrence(o) for o in definition.occurrences],
        [asdict(e) for e in definition.equalities],
        [r.sql for r in definition.residuals],
        [asdict(o) for o in definition.outputs],
        None if grouping is None else asdict(grouping),
    ]


def _occurrence(occurrence: Occurrence) -> list[Any]:
    types = [(i, occurrence.relation.columns[i].type) for i in occurrence.columns]
    return [occurrence.name, types, occurrence.filter]


def _read(outcome: dict[str, Any]) -> Types:
    if refused := outcome.get("refused"):
        raise ViewRefused(refused.pop("code"), refused.pop("message"), **refused)
    found = outcome["types"]
    outputs = tuple((name, type_) for name, type_ in found.pop("outputs"))
    return Types(outputs, **{key: tuple(value) for key, value in found.items()})
