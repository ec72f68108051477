"""Planning a project's views, or finding that nothing was changed since they were last planned.

What was planned is known by a digest of the view files and of the relations that they may read; the
catalog keeps, under that digest, which views it had then. While both are the same and every view is
well, the plans in the catalog are the plans: no text is read, and Spark is not asked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any

from steadyview.catalog import Catalog
from steadyview.runtime.kept import algorithm_of, recalled
from steadyview.runtime.planning import Planned, Refused
from steadyview.runtime.project import ViewFile
from steadyview.runtime.schemas import Relations
from steadyview.views.parse import view_name

_FORMAT = 2
"""Changes whenever a plan of the same text would be another one."""


class Planning:
    """The plans of a run. `plan` makes them; `files` are the view files as they are now.

    `may_recall`: what the files say is all that decides on the plans.
    """

    def __init__(
        self,
        catalog: Catalog,
        plan: Callable[[Relations], list[Planned | Refused]],
        files: Callable[[], Sequence[ViewFile]],
        *,
        may_recall: bool = False,
    ) -> None:
        self._catalog = catalog
        self._plan = plan
        self._files = files
        self._may_recall = may_recall

    def __call__(self, relations: Relations) -> list[Planned | Refused]:
        """The plans, each behind those that it reads."""
        kept = self._kept() if self._may_recall else None
        if kept is not None and self._catalog.typed.find(self._digest(relations)) == kept:
            return list(self._recalled(relations))
        return self._plan(relations)

    def reconciled(self, relations: Relations) -> None:
        """The catalog has the views that were planned over these relations."""
        if self._may_recall and (kept := self._kept()) is not None:
            digest = self._digest(relations)
            if self._catalog.typed.find(digest) != kept:
                self._catalog.typed.keep(digest, kept)

    def _recalled(self, relations: Relations) -> list[Planned]:
        known = {r.name: r for r in relations.schemas}
        paths = {view_name(f.name, f.text): f.path for f in self._files()}
        found = [recalled(row) for row in self._catalog.views.all()]
        return _ordered(
            [
                replace(
                    plan,
                    path=paths.get(plan.name),
                    relations=tuple(known[r.name] for r in plan.relations),
                )
                for plan in found
            ]
        )

    def _digest(self, relations: Relations) -> str:
        facts: list[Any] = [_FORMAT, version("pyspark"), version("steadyview")]
        facts += [[str(f.path), f.text, f.unreadable] for f in self._files()]
        facts += [replace(r, evidence="").to_json() for r in relations.schemas]
        facts += [[str(name), sorted(why.items())] for name, why in relations.unsupported.items()]
        return hashlib.sha256(json.dumps(["planned", facts]).encode()).hexdigest()

    def _kept(self) -> str | None:
        """What tells the catalog's views apart from others; None if one of them is not well."""
        rows = self._catalog.views.all()
        if self._catalog.views.replacements() or any(
            row.state not in ("active", "building") or row.error or row.refusal for row in rows
        ):
            return None
        return json.dumps([[r.name, r.fingerprint, r.level, algorithm_of(r)] for r in rows])


def _ordered(plans: Sequence[Planned]) -> list[Planned]:
    """Each behind those that it reads."""
    known = {p.name: p for p in plans}
    found: dict[str, Planned] = {}

    def add(plan: Planned) -> None:
        for name in plan.parents:
            add(known[name])
        found.setdefault(plan.name, plan)

    for plan in plans:
        add(plan)
    return list(found.values())
