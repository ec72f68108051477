"""The relations a warehouse may use: as recorded, and as the sources have them now."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass

from steadyview.catalog import merge_schema
from steadyview.changes import RelationName, RelationSchema
from steadyview.errors import (
    ChangesLost,
    ConfigError,
    DefiniteError,
    SourceDiverged,
    SourceRefused,
    SourceUnavailable,
    SteadyviewError,
)
from steadyview.runtime.parts import Parts
from steadyview.sources.contract import Source


@dataclass(frozen=True)
class Relations:
    """Relations that views may read, numbered as recorded, and columns that they may not use."""

    schemas: tuple[RelationSchema, ...]
    unsupported: Mapping[RelationName, Mapping[str, str]]

    def by_source(self) -> dict[str, list[RelationSchema]]:
        """The relations of each source."""
        found: dict[str, list[RelationSchema]] = {}
        for schema in self.schemas:
            found.setdefault(schema.name.source, []).append(schema)
        return found


def known_relations(parts: Parts) -> Relations:
    """What was recorded; a source never captured yet is asked."""
    schemas: list[RelationSchema] = []
    unsupported: dict[RelationName, Mapping[str, str]] = {}
    for name in parts.project.sources:
        recorded = parts.catalog.sources.schemas(name)
        schemas += recorded or parts.sources[name].schemas()
    return Relations(tuple(schemas), unsupported)


@dataclass(frozen=True)
class Looked:
    """What the sources have now; of those that do not answer (`away`), what is recorded."""

    relations: Relations
    away: Mapping[str, SteadyviewError]


def looked_at(parts: Parts) -> Looked:
    """Look at every source, side by side; one that does not answer stands with what is recorded."""
    names = list(parts.project.sources)
    schemas: list[RelationSchema] = []
    unsupported: dict[RelationName, Mapping[str, str]] = {}
    away: dict[str, SteadyviewError] = {}
    with ThreadPoolExecutor(max(len(names), 1), "look") as pool:
        for name, found in zip(names, pool.map(lambda n: _look(parts, n), names), strict=True):
            if isinstance(found, SteadyviewError):
                away[name] = found
                schemas += parts.catalog.sources.schemas(name)
            else:
                schemas += found.schemas
                unsupported.update(found.unsupported)
    return Looked(Relations(tuple(schemas), unsupported), away)


def _look(parts: Parts, name: str) -> Relations | SteadyviewError:
    """One source's relations as they are now, numbered as recorded; or why they cannot be had."""
    unsupported: dict[RelationName, Mapping[str, str]] = {}
    recorded = {s.name: s for s in parts.catalog.sources.schemas(name)}
    schemas = []
    try:
        with closing(parts.opened_briefly(name)) as source:
            for current in source.schemas():
                merged = merge_schema(recorded.get(current.name, current), current)
                schemas.append(merged)
                unsupported[current.name] = _gone(merged, current)
            _add(unsupported, source)
    except (SourceUnavailable, SourceRefused, ConfigError) as error:
        return error
    return Relations(tuple(schemas), unsupported)


def record_relations(parts: Parts, source: Source) -> list[RelationSchema]:
    """Record what the source has now and set up its capture; the relations to capture."""
    parts.catalog.sources.register(source.name, source.family)
    known = parts.catalog.sources.schemas(source.name)
    parts.log.check_there([s.name for s in known])
    # a relation has its log before it is recorded: a recorded one without was tampered with
    parts.log.prepare([s for s in source.schemas() if s.name not in {k.name for k in known}])
    source.prepare([parts.catalog.sources.record_schema(s) for s in source.schemas()])
    # once more: what was set up may have given the relations their membership
    relations = [parts.catalog.sources.record_schema(s) for s in source.schemas()]
    parts.log.prepare(relations)
    return relations


@dataclass(frozen=True)
class Present:
    """The relations to capture, and the sources that did not answer when they were asked."""

    relations: Relations
    away: frozenset[str]


def present_sources(parts: Parts, *, patient: bool) -> Present:
    """Record and set up what every source has now.

    If `patient`, a source that does not answer, or refuses, but is known stands with what is
    recorded of it; unless every source refuses, for then there is nothing to do.
    """
    schemas: list[RelationSchema] = []
    unsupported: dict[RelationName, Mapping[str, str]] = {}
    away: dict[str, SteadyviewError] = {}
    for source in parts.sources.values():
        known = parts.catalog.sources.schemas(source.name)
        try:
            schemas += record_relations(parts, source)
            _add(unsupported, source)
        except (SourceUnavailable, SourceRefused, ChangesLost, SourceDiverged) as error:
            if not (patient and known):
                raise
            schemas += known
            away[source.name] = error
    refused = [error for error in away.values() if isinstance(error, DefiniteError)]
    if refused and len(refused) == len(parts.sources):
        raise refused[0]
    return Present(Relations(tuple(schemas), unsupported), frozenset(away))


def _gone(recorded: RelationSchema, current: RelationSchema) -> Mapping[str, str]:
    """Recorded columns that the source no longer has as they were."""
    now = {c.name: c.type for c in current.columns}
    reasons = {}
    for column in recorded.columns:
        if column.name not in now:
            reasons[column.name] = "the column is no longer there"
        elif now[column.name] != column.type:
            reasons[column.name] = f"the column was {column.type} and is {now[column.name]} now"
    return reasons


def _add(unsupported: dict[RelationName, Mapping[str, str]], source: Source) -> None:
    for relation, reasons in source.unsupported().items():
        unsupported[relation] = {**unsupported.get(relation, {}), **reasons}
