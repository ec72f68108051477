"""Which watched relation a table's name means.

`source.table` or `source.schema.table`, without regard to case as in Spark; among several that
differ in case only, the exact spelling wins. `source.table` means schema "public" where there are
several. One word is the name of a relation without a path, `RelationName("r1", ())`: sources have
none, but recorded histories (`checking`) may call their relations so.
"""

from __future__ import annotations

from collections.abc import Sequence

from steadyview.changes import RelationSchema
from steadyview.errors import ViewRefused
from steadyview.nearest import did_you_mean, nearest_or_all
from steadyview.views.source_text import SourceText


def find_relation(
    source: SourceText,
    parts: tuple[str, ...],
    at: int,
    relations: Sequence[RelationSchema],
) -> RelationSchema:
    """The relation called `parts` at offset `at`; UNKNOWN_TABLE or AMBIGUOUS_TABLE if none is."""
    found = _candidates(parts, relations)
    if not found:
        raise _unknown(source, parts, at, relations)
    if len(found) > 1:
        listed = ", ".join(f'"{r.name}"' for r in found)
        fact = f'reads "{".".join(parts)}", which may be {listed}'
        raise source.refusal("AMBIGUOUS_TABLE", at, fact)
    return found[0]


def _candidates(
    parts: tuple[str, ...], relations: Sequence[RelationSchema]
) -> list[RelationSchema]:
    called = [r for r in relations if _called(r, parts)]
    for narrower in (_has_full_path, _is_public, _is_exact):
        if len(called) > 1:
            called = [r for r in called if narrower(r, parts)] or called
    return called


def _called(relation: RelationSchema, parts: tuple[str, ...]) -> bool:
    source, *path = [part.lower() for part in parts]
    own = [part.lower() for part in relation.name.path]
    ending = own[-len(path) :] if path else own
    return source == relation.name.source.lower() and ending == path


def _has_full_path(relation: RelationSchema, parts: tuple[str, ...]) -> bool:
    return len(relation.name.path) == len(parts) - 1


def _is_public(relation: RelationSchema, parts: tuple[str, ...]) -> bool:
    return relation.name.path[:-1] == ("public",)


def _is_exact(relation: RelationSchema, parts: tuple[str, ...]) -> bool:
    return relation.name.source == parts[0] and relation.name.path[1 - len(parts) :] == parts[1:]


def _unknown(
    source: SourceText, parts: tuple[str, ...], at: int, relations: Sequence[RelationSchema]
) -> ViewRefused:
    name = ".".join(parts)
    way = did_you_mean(name, [_short(r) for r in relations])
    known = {r.name.source for r in relations}
    if way is None and len(parts) > 1 and parts[0] in known:
        way = f"list the table in tables of [sources.{parts[0]}] in steadyview.toml"
    elif way is None and len(parts) > 1:
        way = f'there is no source "{parts[0]}"; {nearest_or_all(parts[0], known)}'
    return source.refusal("UNKNOWN_TABLE", at, f'reads the unknown table "{name}"', instead=way)


def _short(relation: RelationSchema) -> str:
    path = relation.name.path
    return ".".join((relation.name.source, *(path[1:] if path[:-1] == ("public",) else path)))
