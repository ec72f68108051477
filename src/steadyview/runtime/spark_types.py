"""What Spark says about a view's types: asked once, then remembered in the catalog.

So a view that has not changed since it was last planned needs no Spark to be planned again. The
digest names all that the answer depends on: the expressions, the types of the columns they use, and
Spark's version. A refusal is an answer too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from steadyview.catalog.typed import Typed
from steadyview.changes import RelationSchema
from steadyview.errors import ViewRefused
from steadyview.plans.draft import Draft
from steadyview.plans.plan import Origin, PlanNode, as_data, from_json, to_json
from steadyview.views.parse import ViewText
from steadyview.views.rewrite import with_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Columns = tuple[tuple[str, str], ...]
"""Names and types."""
_FORMAT = 3
"""Of what is remembered: an answer in another one is asked for again."""
_REFUSAL = ("code", "message", "detail", "hint", "line", "column")


class SparkTypes:
    """Types of views. `session` starts Spark if it does not run yet: called only if need be."""

    def __init__(self, session: Callable[[], SparkSession], remembered: Typed) -> None:
        self._session = session
        self._remembered = remembered

    def check_reading(self, text: ViewText) -> None:
        """ViewRefused if Spark reads the view's text otherwise than we do."""

        def ask() -> bool:
            from steadyview.engine.reading import check_reading

            check_reading(self._session(), text)
            return True

        self._answered(["reading", text.name, text.select, text.line, text.column], ask)

    def nodes(
        self, view: str, draft: Draft, origins: Sequence[Origin], types: Sequence[Mapping[int, str]]
    ) -> list[PlanNode]:
        """A draft of a view with its types; ViewRefused if Spark rejects it.

        More than one node where it takes more; the draft's own is the last.
        """

        def ask() -> list[dict[str, Any]]:
            from steadyview.engine.node_types import typed

            return [to_json(n) for n in typed(self._session(), view, draft, origins, types)]

        read = [list(t.items()) for t in types]
        known = self._answered([view, as_data(draft), as_data(tuple(origins)), read], ask)
        return [from_json(n) for n in known]

    def of_text(self, text: ViewText, used: Sequence[RelationSchema]) -> Columns:
        """The columns of a view that is recomputed from its text; ViewRefused if Spark rejects."""

        def ask() -> list[list[str]]:
            from steadyview.engine.analysis import output_types

            names = {r.name: f"sv_empty_{i}" for i, r in enumerate(used)}
            sql = with_tables(text, names, used)
            empty = {names[r.name]: [(c.name, c.type) for c in r.columns] for r in used}
            return [list(c) for c in output_types(self._session(), text.name, sql, empty)]

        columns = [[str(r.name), [(c.name, c.type) for c in r.columns]] for r in used]
        found = self._answered([text.name, text.select, columns], ask)
        return tuple((name, type_) for name, type_ in found)

    def _answered(self, facts: list[Any], ask: Callable[[], Any]) -> Any:
        """What `ask` gives, as JSON; remembered."""
        known_by = json.dumps([_FORMAT, version("pyspark"), facts])
        digest = hashlib.sha256(known_by.encode()).hexdigest()
        known = self._remembered.find(digest)
        if known is not None:
            return _read(json.loads(known))
        try:
            found = ask()
        except ViewRefused as refusal:
            parts = {p: getattr(refusal, p) for p in _REFUSAL}
            self._remembered.keep(digest, json.dumps({"refused": parts}))
            raise
        self._remembered.keep(digest, json.dumps({"found": found}))
        return json.loads(json.dumps(found))


def _read(outcome: dict[str, Any]) -> Any:
    if refused := outcome.get("refused"):
        raise ViewRefused(refused.pop("code"), refused.pop("message"), **refused)
    return outcome["found"]
