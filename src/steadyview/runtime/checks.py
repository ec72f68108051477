"""What `steadyview check` says of a view."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from steadyview.errors import ViewRefused
from steadyview.runtime.planning import Planned, Refused


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

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "path": str(self.path)}


def checked(plan: Planned | Refused) -> ViewCheck:
    """The verdict of one plan."""
    if isinstance(plan, Refused):
        return _because(plan.name, plan.path, "refused", plan.refusal)
    if plan.refusal is not None:
        return _because(plan.name, plan.path, plan.kind, plan.refusal)
    return ViewCheck(plan.name, plan.path, plan.kind)


def _because(name: str, path: Path, verdict: str, refusal: ViewRefused) -> ViewCheck:
    message = refusal.message + (f": {refusal.detail}" if refusal.detail else "")
    return ViewCheck(
        name, path, verdict, refusal.code, message, refusal.line, refusal.column, refusal.hint
    )
