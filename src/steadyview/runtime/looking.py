"""Looking at a project's views, as they are kept and, where they are not yet, as planned."""

from __future__ import annotations

from steadyview.catalog import ViewRow
from steadyview.errors import ViewRefused
from steadyview.runtime.checks import SourceCheck, ViewCheck, checked, missing_at, unseen_at
from steadyview.runtime.explain import Explanation, explain
from steadyview.runtime.graph import Graph, graph
from steadyview.runtime.kept import all_recalled
from steadyview.runtime.parts import Parts
from steadyview.runtime.planning import Planned, Refused, all_sources
from steadyview.runtime.project import load_project
from steadyview.runtime.schemas import looked_at
from steadyview.runtime.status import time_of
from steadyview.runtime.view_plans import ViewPlans, one_of
from steadyview.views.parse import parse_view, view_name


def checks(parts: Parts, plans: ViewPlans) -> list[ViewCheck | SourceCheck]:
    """What is missing at the sources, every view's verdict, and what capture does not see."""
    found = looked_at(parts)
    missing = missing_at(parts, found)
    every = plans.over(found.relations)
    shown = [p for p in every if isinstance(p, Refused) or not p.hidden]
    stores = parts.project.stores
    return [*missing, *(checked(p, stores) for p in shown), *unseen_at(parts, found)]


def explained(parts: Parts, plans: ViewPlans, name: str) -> Explanation:
    """The plan of a view: as it is kept or, if it is not kept yet, as planned."""
    # imported late: a graph needs no Spark
    from steadyview.runtime.sizes import sizes

    rows = {r.name: r for r in parts.catalog.views.all()}
    row = next((r for r in rows.values() if r.name.lower() == name.lower()), None)
    if row is None or row.state == "refused":
        return _explained_as_planned(parts, plans, name)
    time = time_of(parts.catalog, row.cn)
    stands = {
        "state": row.state,
        "cn": row.cn,
        "time": None if time is None else time.isoformat(timespec="seconds"),
        "notes": _notes(parts, row),
    }
    kept = all_recalled(rows.values())
    return explain(kept[row.name], kept, lambda n: sizes(parts.root, rows[n]), stands)


def _explained_as_planned(parts: Parts, plans: ViewPlans, name: str) -> Explanation:
    """The plan of a view that is not kept; the sources are looked at for it."""
    found = looked_at(parts)
    every = plans.over(found.relations)
    plan = one_of(every, name)
    known = {p.name: p for p in every if isinstance(p, Planned)}
    away = sorted(all_sources(plan, known) & found.away.keys())
    notes = [f"as recorded of {n}: {found.away[n].message}" for n in away]
    stands = {"state": "not built yet", "cn": None, "time": None, "notes": notes}
    return explain(plan, known, lambda _: None, stands)


def _notes(parts: Parts, row: ViewRow) -> list[str]:
    """What to know of a view's plan: that its file says something else by now, or is gone."""
    notes = [row.error.splitlines()[0]] if row.error else []
    files = load_project(parts.project.root).views
    file = next((f for f in files if view_name(f.name, f.text) == row.name), None)
    if file is None:
        return [*notes, "it has no file any more"]
    try:
        changed = parse_view(file.name, file.text).select != row.sql
    except ViewRefused:
        changed = True
    if changed:
        notes.append("its file was changed since; steadyview run builds it anew")
    return notes


def drawn(parts: Parts, plans: ViewPlans) -> Graph:
    """Sources' relations, hidden nodes and views: as kept, and as planned what is not yet."""
    rows = parts.catalog.views.all()
    kept = all_recalled(rows)
    states = {r.name: r.state for r in rows}
    refused = [r.name for r in rows if r.state == "refused"]
    if any(name not in states for name in file_names(parts)):
        for plan in plans.over(looked_at(parts).relations):
            if isinstance(plan, Refused):
                refused += [plan.name] * (plan.name not in states)
            else:
                kept.setdefault(plan.name, plan)
    return graph(kept, states, refused)


def file_names(parts: Parts) -> list[str]:
    """The names of the views that the project has files of."""
    return [view_name(f.name, f.text) for f in load_project(parts.project.root).views]
