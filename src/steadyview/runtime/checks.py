"""What `steadyview check` says of a view, and of a source that is not ready."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from steadyview.catalog import from_us
from steadyview.errors import SteadyviewError, ViewRefused
from steadyview.runtime.managers.log_views import LOG_FAMILIES, planned_log_view
from steadyview.runtime.parts import Parts
from steadyview.runtime.planning import Planned, Refused
from steadyview.runtime.removing import orphaned
from steadyview.runtime.schemas import Looked
from steadyview.views.record_rows import NotByRecord

NO_STORES: Mapping[str, Mapping[str, Any]] = {}


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
    """One thing that is missing at a source, and what to do about it; or ("note") worth knowing."""

    name: str
    message: str
    hint: str | None = None
    verdict: str = "not ready"

    def to_dict(self) -> dict[str, Any]:
        """For JSON; `source` tells it from a view's verdict."""
        return {"source": self.name, **asdict(self)}


def missing_at(parts: Parts, looked: Looked) -> list[SourceCheck]:
    """What keeps the relations of the sources from being captured and read."""
    by_source = looked.relations.by_source()
    found = [_away(parts, name, error) for name, error in looked.away.items()]
    for name, relations in by_source.items():
        if name not in looked.away:
            obstacles = parts.sources[name].obstacles(relations)
            found += [SourceCheck(name, _fact(o), o.hint) for o in obstacles]
    for name, left in orphaned(parts).items():
        fact = f"it is no longer in steadyview.toml, and still holds: {'; '.join(left)}"
        found.append(SourceCheck(name, fact, f"run: steadyview source remove {name}"))
    return found


def unseen_at(parts: Parts, looked: Looked) -> list[SourceCheck]:
    """Of each source that is watched: what capture does not see, and whether an audit does."""
    watched = [name for name in looked.relations.by_source() if name in parts.sources]
    return [_unseen(parts, name) for name in sorted(watched)]


def _unseen(parts: Parts, name: str) -> SourceCheck:
    fact = f"capture, whatever it is granted, does not see: {parts.sources[name].unseen}"
    if parts.project.sources[name]["audit"] != "off":
        return SourceCheck(name, f"{fact}; the daily audit does", verdict="note")
    hint = f'set audit = "daily" in [sources.{name}]'
    return SourceCheck(name, f"{fact}; its audit is off: only verify does", hint, "note")


def _away(parts: Parts, name: str, error: SteadyviewError) -> SourceCheck:
    known = parts.catalog.sources.schemas(name)
    states = {s.name: s for s in parts.catalog.sources.states()}
    heard = states[name].heard if name in states else None
    as_of = f" of {from_us(heard).isoformat(timespec='seconds')}" if heard else ""
    fact = _fact(error)
    if known:
        fact += f"; its views are checked against what was recorded{as_of}"
    return SourceCheck(name, fact, error.hint)


def _fact(error: SteadyviewError) -> str:
    return error.message + (f": {error.detail}" if error.detail else "")


def checked(
    plan: Planned | Refused, stores: Mapping[str, Mapping[str, Any]] = NO_STORES
) -> ViewCheck:
    """The verdict of one plan; `stores`: those that views can be served from."""
    if isinstance(plan, Refused):
        return _because(plan.name, plan.path, "refused", plan.refusal)
    assert plan.path is not None, "a view that is planned has a file"
    warnings = plan.warnings
    served = None if plan.text is None else plan.text.serve
    if served is not None and served not in stores:
        warnings += (f'it is not served: steadyview.toml has no [stores.{served}]',)
    elif (why := _not_from_log(plan, stores)) is not None:
        warnings += (f"it is served from its changes, not straight from the log: {why}",)
    if plan.refusal is not None:
        found = _because(plan.name, plan.path, plan.kind, plan.refusal)
        return replace(found, warnings=warnings)
    return ViewCheck(plan.name, plan.path, plan.kind, warnings=warnings)


def _not_from_log(plan: Planned, stores: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Why the view is not served in the way that its file asks for; None: it is."""
    try:
        if planned_log_view(plan) is None:
            return None
    except NotByRecord as error:
        return str(error)
    assert plan.text is not None
    family = stores[str(plan.text.serve)]["type"]
    return None if family in LOG_FAMILIES else f"store \"{plan.text.serve}\" is of type {family}"


def _because(name: str, path: Path, verdict: str, refusal: ViewRefused) -> ViewCheck:
    fact = _fact(refusal)
    return ViewCheck(
        name, path, verdict, refusal.code, fact, refusal.line, refusal.column, refusal.hint
    )
