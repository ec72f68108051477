"""Removing a source: what is set up there, its log, and the views that read it.

A source whose section is gone from the project file cannot be reached any more: what the warehouse
keeps of it is removed, and what it still holds at its database is told.
"""

from __future__ import annotations

from steadyview.runtime.parts import Parts, owner_of
from steadyview.runtime.renewing import readers
from steadyview.sources.registry import left_behind


def remove_source(parts: Parts, name: str) -> list[str]:
    """Leave nothing of the source behind, here and there; what was done, for people."""
    # first, so that no view ever rests on a stream with a gap
    for row in readers(parts.catalog, name):
        parts.catalog.views.drop(row.name)
    if name in parts.project.sources:
        done = parts.sources[name].remove()
    else:
        done = [f"still at its database: {thing}" for thing in orphaned(parts)[name]]
    return done + _forget(parts, name)


def orphaned(parts: Parts) -> dict[str, list[str]]:
    """Sources that the project file no longer names, each with what it holds at its database."""
    return {
        state.name: left_behind(state.name, state.family, owner_of(parts.catalog, state.name))
        for state in parts.catalog.sources.states()
        if state.name not in parts.project.sources
    }


def _forget(parts: Parts, name: str) -> list[str]:
    parts.log.forget(name)
    if name not in {s.name for s in parts.catalog.sources.states()}:
        return []
    parts.catalog.sources.forget(name)
    return [f'the update log of source "{name}"']
