"""Whether every change of a relation was in the stream: what the server's catalog shows of it.

Compared with what was seen last (`RelationSchema.evidence`) are the identities that PostgreSQL
gives to things, and the transactions that last wrote their catalog rows (xmin):

    publication   oid, xmin     ALTER PUBLICATION ... SET: a kind of change may have been left out
    membership    oid, xmin     taken out and put back, dropped and made anew, filtered for a while
    relation      oid           another table of that name
    column        attnum        another column of that name
                  type, labels  values that changed without a change of their rows; each label has
                                its oid and xmin, for rows written while it was renamed keep that
                  xmin          together with a new relfilenode: ALTER TYPE has rewritten its values

A relfilenode alone (VACUUM FULL, CLUSTER) and an xmin alone (SET DEFAULT, SET STATISTICS) are
harmless. TRUNCATE and changes under another replica identity are told by the stream itself.
A `defect` is no difference but a present lack: as long as it is there, changes are being lost.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import psycopg
from psycopg import sql

from steadyview.changes import Column, Loss, RelationName, RelationSchema
from steadyview.sources.contract import Examined
from steadyview.sources.postgres.publication import Path, Publication, read_publication
from steadyview.sources.postgres.schema import SOURCE_TYPE
from steadyview.sources.postgres.types import pg_type

_RELATIONS = f"""
SELECT n.nspname, c.relname, c.oid::text, pg_relation_filenode(c.oid)::text, c.relreplident = 'f',
    (SELECT json_object_agg(a.attname, json_build_array(
        a.attnum, t.oid::text, {SOURCE_TYPE.format(typmod="a.atttypmod")}, a.xmin::text,
        a.attgenerated <> '', a.atthasmissing,
        (SELECT d.oid::text FROM pg_attrdef d WHERE d.adrelid = c.oid AND d.adnum = a.attnum),
        (SELECT json_object_agg(e.oid::text, json_build_array(e.enumlabel, e.xmin::text))
         FROM pg_enum e WHERE t.typtype = 'e' AND e.enumtypid = t.oid)))
     FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
     JOIN pg_namespace tn ON tn.oid = t.typnamespace
     WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped)
FROM unnest(%s::text[], %s::text[]) AS w(s, t) JOIN pg_namespace n ON n.nspname = w.s
JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = w.t WHERE c.relkind = 'r'"""


@dataclass(frozen=True)
class ColumnEvidence:
    """A column.

    `missing`: rows from before it was added do not store its default yet. `expression` is the oid
    of that default, or of what generates it; `labels` are an enum's by their oids, each with its
    version (alone, as an older version of ours recorded it).
    """

    place: int
    type: str
    source_type: str
    version: str
    generated: bool
    missing: bool
    expression: str | None
    labels: Mapping[str, Sequence[str] | str] | None

    def altered(self, new: ColumnEvidence) -> bool:
        """Whether ALTER TABLE has written its catalog row, and may have computed its values anew.

        Writing missing defaults into the rows (VACUUM FULL, CLUSTER) leaves the default alone;
        ALTER TYPE makes it anew.
        """
        same_default = self.expression is not None and self.expression == new.expression
        filled = self.missing and not new.missing and same_default
        if self.version != new.version and not filled:
            return True
        return new.generated and not same_default


@dataclass(frozen=True)
class Evidence:
    """A relation, its publication and its membership there; each a row's oid and xmin."""

    oid: str
    file: str
    publication: Sequence[str] | None
    membership: Sequence[str] | None
    columns: Mapping[str, ColumnEvidence]

    def __str__(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @staticmethod
    def parse(text: str) -> Evidence | None:
        """Read back what `str` wrote; None for nothing."""
        if not text:
            return None
        known: dict[str, Any] = json.loads(text)
        columns = {n: ColumnEvidence(**c) for n, c in known.pop("columns").items()}
        return Evidence(columns=columns, **known)


@dataclass(frozen=True)
class Identity:
    """By what the stream must describe a relation: its oid, and its columns' numbers by name."""

    oid: int
    places: Mapping[str, int]

    @staticmethod
    def of(relation: RelationSchema) -> Identity | None:
        """As it was seen last; None if it was never looked at."""
        known = Evidence.parse(relation.evidence)
        if known is None:
            return None
        return Identity(int(known.oid), {n: c.place for n, c in known.columns.items()})


@dataclass(frozen=True)
class Defect:
    """Why changes of a relation are being lost now, and the statements that end it."""

    reason: str
    mending: str


@dataclass(frozen=True)
class Present:
    """A relation as it is now."""

    evidence: Evidence
    defect: Defect | None


def present(
    connection: psycopg.Connection, name: str, paths: Sequence[Path]
) -> dict[tuple[str, ...], Present]:
    """Those of the tables that exist, by path; `name` is the publication."""
    publication = read_publication(connection, name)
    question = [[p[0] for p in paths], [p[1] for p in paths]]
    rows = connection.execute(_RELATIONS, question).fetchall()
    return {(r[0], r[1]): _present(name, publication, r) for r in rows}


def known_member(relation: RelationSchema) -> bool:
    """Whether the relation was seen in its publication before."""
    known = Evidence.parse(relation.evidence)
    return known is not None and known.membership is not None


def examined(
    relations: Sequence[RelationSchema], found: Mapping[tuple[str, ...], Present]
) -> Examined:
    """What is lost of the relations, and their present evidence."""
    losses = [
        Loss(relation.name, column, 0, reason)
        for relation in relations
        for column, reason in lost(relation, found.get(relation.name.path))
    ]
    evidence = {
        r.name: str(found[r.name.path].evidence) for r in relations if r.name.path in found
    }
    return Examined(tuple(losses), evidence)


def lost(relation: RelationSchema, now: Present | None) -> list[tuple[str | None, str]]:
    """Columns (None: the whole relation) with the reason why something may be missing."""
    if now is None:
        return [(None, f'"{relation.name}" was dropped or renamed')]
    if now.defect:
        return [(None, f'changes of "{relation.name}" are being lost: {now.defect.reason}')]
    known = Evidence.parse(relation.evidence)
    if known is None:
        return []
    whole = _relation_changed(known, now.evidence)
    if whole:
        return [(None, f'changes of "{relation.name}" may be missing: {whole}')]
    found = [(c.name, _column_changed(c, known, now.evidence)) for c in relation.columns]
    return [
        (name, f'column "{name}" of "{relation.name}" {reason}') for name, reason in found if reason
    ]


class Witness:
    """Looks again and again, and tells each loss once, until it is found mended."""

    def __init__(
        self,
        relations: Sequence[RelationSchema],
        look: Callable[[], Mapping[tuple[str, ...], Present]],
    ) -> None:
        self._relations = {r.name: r for r in relations}
        self._look = look
        self._told: dict[tuple[RelationName, str | None], str] = {}

    @property
    def relations(self) -> list[RelationSchema]:
        """With what the last look has shown of them."""
        return list(self._relations.values())

    def losses(self) -> list[Loss]:
        """What was not told yet. What is found now is what the next look compares with."""
        seen = examined(list(self._relations.values()), self._look())
        for name, evidence in seen.evidence.items():
            self._relations[name] = _with_evidence(self._relations[name], evidence)
        new = [x for x in seen.losses if self._told.get((x.relation, x.column)) != x.reason]
        self._told = {(x.relation, x.column): x.reason for x in seen.losses}
        return new


def _with_evidence(relation: RelationSchema, evidence: str) -> RelationSchema:
    return RelationSchema(relation.name, relation.columns, evidence=evidence)


def _present(name: str, publication: Publication | None, row: Sequence[Any]) -> Present:
    path = (row[0], row[1])
    member = publication.members.get(path) if publication else None
    columns = {n: ColumnEvidence(*c) for n, c in (row[5] or {}).items()}
    evidence = Evidence(
        row[2],
        row[3],
        [publication.oid, publication.version] if publication else None,
        [member.oid, member.version] if member else None,
        columns,
    )
    return Present(evidence, _defect(name, publication, path, full_identity=row[4]))


def _defect(
    name: str, publication: Publication | None, path: Path, *, full_identity: bool
) -> Defect | None:
    table = sql.Identifier(*path)
    if publication is None:
        made = sql.SQL("CREATE PUBLICATION {} FOR TABLE ONLY {}")
        statement = made.format(sql.Identifier(name), table).as_string(None)
        return Defect(f'publication "{name}" does not exist', statement)
    if reason := publication.defect(path):
        return Defect(reason, publication.mended([path]))
    if not full_identity:
        alter = sql.SQL("ALTER TABLE {} REPLICA IDENTITY FULL").format(table)
        return Defect("it no longer has REPLICA IDENTITY FULL", alter.as_string(None))
    return None


def _relation_changed(known: Evidence, now: Evidence) -> str | None:
    if known.oid != now.oid:
        return "it is another table now (dropped and made anew, or swapped by renaming)"
    if known.publication != now.publication:
        return "its publication was changed: some kinds of change may have been left out"
    if known.membership != now.membership:
        return "it left the publication for a while"
    return None


def _column_changed(column: Column, known: Evidence, now: Evidence) -> str | None:
    """What became of a column; None if its values are what they were."""
    old, new = known.columns.get(column.name), now.columns.get(column.name)
    if old is None:
        return None
    if new is None:
        return "was dropped or renamed"
    if old.place != new.place:
        return "is another column now (dropped and added again, or renamed)"
    retyped = pg_type(old.source_type) != pg_type(new.source_type)
    if retyped or (new.labels is not None and old.type != new.type):
        return f'was retyped from "{old.source_type}" to "{new.source_type}"'
    for oid, label in (old.labels or {}).items():
        if reason := _relabelled(label, (new.labels or {}).get(oid)):
            return reason
    if known.file != now.file and old.altered(new):
        return "was rewritten by ALTER TABLE"
    return None


def _relabelled(old: Sequence[str] | str, new: Sequence[str] | str | None) -> str | None:
    """What became of an enum's label: text and xmin, or the text alone."""
    before, version = (old, None) if isinstance(old, str) else old
    now, found = (None, None) if new is None else new
    if before != now:
        return f'holds an enum whose label "{before}" is now "{now}"'
    if version not in (None, found):
        return f'holds an enum whose label "{before}" was renamed for a while'
    return None
