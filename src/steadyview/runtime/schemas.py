"""The relations a warehouse may use: as recorded, and as the sources have them now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from steadyview.sources.spelling import parts as spelled
from steadyview.views.mentions import mentions_relation


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


@dataclass(frozen=True)
class Recorded:
    """The relations of a source to capture; `defects` are those that are not fit for it now.

    A relation with a defect stays what was recorded of it: what the stream tells of it counts, so
    that its views can go on if it is put right. The other relations of the source go on.
    """

    relations: Sequence[RelationSchema]
    unsupported: Mapping[RelationName, Mapping[str, str]]
    defects: Mapping[RelationName, SteadyviewError]


def record_relations(parts: Parts, source: Source) -> Recorded:
    """Record what the source has now and set up its capture; its capture does not run.

    A relation that the project file no longer names is forgotten, and no view goes on with it: its
    changes are not captured from now on.
    """
    sources = parts.catalog.sources
    sources.register(source.name, source.family)
    known = sources.schemas(source.name)
    looked = _tables(parts, source, known)
    fit = {s.name for s in looked.relations}
    for relation in (k.name for k in known if k.name not in fit | looked.defects.keys()):
        _forget(parts, relation)
    known = [k for k in known if k.name in fit | looked.defects.keys()]
    parts.log.check_there([s.name for s in known])
    # a relation has its log before it is recorded: a recorded one without was tampered with
    parts.log.prepare([s for s in looked.relations if s.name not in {k.name for k in known}])
    defects = set_up(source, [sources.record_schema(s) for s in looked.relations])
    # once more: what was set up may have given the relations their membership
    again = _tables(parts, source, known)
    relations = [sources.record_schema(s) for s in again.relations]
    relations += [k for k in known if k.name not in {r.name for r in relations}]
    parts.log.prepare(relations)
    return Recorded(relations, again.unsupported, {**defects, **again.defects})


def set_up(
    source: Source, relations: Sequence[RelationSchema]
) -> dict[RelationName, SteadyviewError]:
    """Set up what the capture of the relations lacks; those for which that is refused, and why.

    Raises where it is refused for all of them: then it is the source's trouble.
    """
    try:
        source.prepare(relations)
    except SourceRefused as refused:
        found: dict[RelationName, SteadyviewError] = {}
        for relation in relations:
            try:
                source.prepare([relation])
            except SourceRefused as error:
                found[relation.name] = _defect(error, relation.name)
        if len(found) == len(relations):
            raise refused from None
        return found
    return {}


def _tables(parts: Parts, source: Source, known: Sequence[RelationSchema]) -> Recorded:
    """The source's tables as they are now, each by itself where one of them cannot be watched."""
    try:
        return Recorded(source.schemas(), source.unsupported(), {})
    except SourceRefused as refused:
        tables = parts.project.sources[source.name]["tables"]
        schemas: list[RelationSchema] = []
        unsupported: dict[RelationName, Mapping[str, str]] = {}
        defects: dict[RelationName, SteadyviewError] = {}
        for table in tables if known else ():
            try:
                with closing(parts.opened_for(source.name, table)) as one:
                    schemas += one.schemas()
                    unsupported.update(one.unsupported())
            except SourceRefused as error:
                name = _named(source.name, table, known)
                defects[name] = _defect(error, name)
        if not schemas:
            raise refused from None
        return Recorded(schemas, unsupported, defects)


def _named(source: str, table: str, known: Sequence[RelationSchema]) -> RelationName:
    """The relation that the project file means, as recorded if it was."""
    path = tuple(part.text for part in spelled(table))
    ends = [k.name for k in known if k.name.path[-1].lower() == path[-1].lower()]
    return ends[0] if ends else RelationName(source, path)


def _defect(error: SteadyviewError, relation: RelationName) -> SteadyviewError:
    """The same error with a way out: a table that is not needed need not be right."""
    out = f'or take it out of "tables" of [sources.{relation.source}] in steadyview.toml'
    hint = f"{error.hint}; {out}" if error.hint else f"put it right, {out}"
    return SourceRefused(error.message, detail=error.detail, hint=hint)


def _forget(parts: Parts, relation: RelationName) -> None:
    """Drop the views that read the relation, and only then forget it."""
    for row in parts.catalog.views.all():
        if mentions_relation(row.sql, relation):
            parts.catalog.views.drop(row.name)
    parts.catalog.sources.forget_relation(relation)
    parts.log.forget_relation(relation)


@dataclass(frozen=True)
class PresentSources:
    """The relations to capture, and the sources that did not answer when they were asked.

    `defects`: the relations that cannot be captured or read as they are now.
    """

    relations: Relations
    away: frozenset[str]
    defects: Mapping[RelationName, SteadyviewError]


def present_sources(parts: Parts) -> PresentSources:
    """Record and set up what every source has now.

    A source that does not answer, or refuses, but is known stands with what is recorded of it;
    unless every source refuses, for then there is nothing to do.
    """
    schemas: list[RelationSchema] = []
    unsupported: dict[RelationName, Mapping[str, str]] = {}
    defects: dict[RelationName, SteadyviewError] = {}
    away: dict[str, SteadyviewError] = {}
    for source in parts.sources.values():
        known = parts.catalog.sources.schemas(source.name)
        try:
            found = record_relations(parts, source)
        except (SourceUnavailable, SourceRefused, ChangesLost, SourceDiverged) as error:
            if not known:
                raise
            schemas += known
            away[source.name] = error
        else:
            schemas += found.relations
            unsupported.update(found.unsupported)
            defects.update(found.defects)
    refused = [error for error in away.values() if isinstance(error, DefiniteError)]
    if refused and len(refused) == len(parts.sources):
        raise refused[0]
    return PresentSources(Relations(tuple(schemas), unsupported), frozenset(away), defects)


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
