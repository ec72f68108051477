"""The plans of a project's views, made once for what the files and the sources say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from steadyview.errors import ConfigError
from steadyview.nearest import nearest_or_all
from steadyview.plans.plan import HIDDEN
from steadyview.runtime.parts import Parts
from steadyview.runtime.planning import Planned, Refused, plan_views, with_algorithm
from steadyview.runtime.project import load_project
from steadyview.runtime.replanning import Planning
from steadyview.runtime.schemas import Relations, known_relations
from steadyview.runtime.spark_types import SparkTypes

if TYPE_CHECKING:
    from steadyview.runtime.keeping import Plan


class ViewPlans:
    """Plans the views of one open project.

    `tell` is called with what to know of a view's file, each once however often it is planned.
    """

    def __init__(self, parts: Parts, tell: Callable[[str], None]) -> None:
        self._parts = parts
        self._tell = tell
        self._told: set[str] = set()
        self._made: tuple[object, list[Planned | Refused]] | None = None

    def over(self, relations: Relations) -> list[Planned | Refused]:
        """All plans, each behind those that it reads."""
        files = load_project(self._parts.project.root).views
        asked = (files, relations)
        if self._made is None or self._made[0] != asked:
            types = SparkTypes(lambda: self._parts.spark, self._parts.catalog.typed)
            plans = plan_views(types, files, relations.schemas, relations.unsupported)
            self._made = (asked, plans)
        return self._made[1]

    def one(self, name: str) -> Planned:
        """The plan of a view over what is known of the sources; what is wrong with it is raised."""
        return one_of(self.over(known_relations(self._parts)), name)

    def only_one(self) -> Planned:
        """The plan of the project's only view, for a recording; ConfigError if it has others."""
        plans = self.over(known_relations(self._parts))
        names = [p.name for p in plans if not p.name.startswith(HIDDEN)]
        if len(names) != 1:
            raise ConfigError(
                f"one view can be recorded, and the project has {len(names)}",
                detail=f"views: {', '.join(sorted(names)) or 'none'}",
                hint="say which: --record FILE --view NAME",
            )
        return one_of(plans, names[0])

    def for_run(self, algorithm: str | None, *, may_recall: bool = False) -> Plan:
        """How a run plans its views; `may_recall`: it does not, if nothing was changed."""

        def planned(relations: Relations) -> list[Planned | Refused]:
            plans = self.over(relations)
            self._tell_once(plans)
            return plans if algorithm is None else with_algorithm(plans, algorithm)

        files = lambda: load_project(self._parts.project.root).views  # noqa: E731
        may_recall = may_recall and algorithm is None
        return Planning(self._parts.catalog, planned, files, may_recall=may_recall)

    def _tell_once(self, plans: Sequence[Planned | Refused]) -> None:
        kept = [plan for plan in plans if isinstance(plan, Planned)]
        for text in (f"{plan.path}: warning: {found}" for plan in kept for found in plan.warnings):
            if text not in self._told:
                self._told.add(text)
                self._tell(text)


def one_of(plans: Sequence[Planned | Refused], name: str) -> Planned:
    """The plan of that name; what is wrong with it, or with the name, is raised."""
    for plan in plans:
        if plan.name.lower() == name.lower():
            if isinstance(plan, Refused):
                raise plan.refusal
            return plan
    raise no_view(name, [p.name for p in plans if not p.name.startswith(HIDDEN)])


def no_view(name: str, known: Sequence[str]) -> ConfigError:
    """There is no view of that name; these there are."""
    return ConfigError(
        f'there is no view "{name}"',
        hint=nearest_or_all(name, known) or "put a view's SQL into a file of views/",
    )
