"""What `steadyview check` says of a view, and of a source that is not ready."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from steadyview.changes import RelationSchema
from steadyview.errors import SteadyviewError, ViewRefused
from steadyview.runtime.planning import Planned, Refused
from steadyview.sources.contract import Source


@dataclass(frozen=True)
class ViewCheck:
    """A view's verdict: incremental, or recomputed or refused for a reason at a place."""

    name: str
    path: Path
    verdict: str
    code: str | None = None
    message: str | None = None
    line: int | None = None
    column: int | None = None
    hint: str | None = None
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "path": str(self.path)}


@dataclass(frozen=True)
class SourceCheck:
    """One thing that is missing at a source, and what to do about it."""

    name: str
    message: str
    hint: str | None = None
    verdict: str = "not ready"

    def to_dict(self) -> dict[str, Any]:
        """For JSON; `source` tells it from a view's verdict."""
        return {"source": self.name, **asdict(self)}


def missing_at(source: Source, relations: Sequence[RelationSchema]) -> list[SourceCheck]:
    """What keeps the relations of one source from being captured and read."""
    return [
        SourceCheck(source.name, _fact(found), found.hint) for found in source.obstacles(relations)
    ]


def _fact(error: SteadyviewError) -> str:
    return error.message + (f": {error.detail}" if error.detail else "")


def checked(plan: Planned | Refused) -> ViewCheck:
    """The verdict of one plan."""
    if isinstance(plan, Refused):
        return _because(plan.name, plan.path, "refused", plan.refusal)
    if plan.refusal is not None:
        found = _because(plan.name, plan.path, plan.kind, plan.refusal)
        return replace(found, warnings=plan.warnings)
    return ViewCheck(plan.name, plan.path, plan.kind, warnings=plan.warnings)


def _because(name: str, path: Path, verdict: str, refusal: ViewRefused) -> ViewCheck:
    fact = _fact(refusal)
    return ViewCheck(
        name, path, verdict, refusal.code, fact, refusal.line, refusal.column, refusal.hint
    )
