"""From replication messages to chunks: transactions counted, rows typed, losses named.

Invariant: between two calls of `chunk`, `ended` are the transactions whose commit was taken since,
and every row message taken since is held exactly once. A transaction gets a number only if it
changed a watched relation (TRUNCATE included).

A loss is told once per column and transaction, in every transaction that loses something: a view
made anew after one loss must hear of the next. A value that cannot be kept is NULL, those around it
are not. Losing a whole relation is losing each of its columns.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from steadyview.changes import (
    Chunk,
    Loss,
    RelationName,
    RelationSchema,
    Transaction,
    arrow_type,
)
from steadyview.changes.types import COUNT, SEQ, TX
from steadyview.sources.postgres import pgoutput
from steadyview.sources.postgres.pgoutput import Begin, RelationMessage, RowMessages
from steadyview.sources.postgres.position import Lsn
from steadyview.sources.postgres.types import PgType, convert_good, pg_type

MARKER = "steadyview"
"""Prefix of the logical messages that a snapshot sends through the stream."""

Describe = Callable[[Sequence[tuple[int, int]]], list[str]]
"""Type oids and modifiers to source types, as `schema.py` writes them."""


Places = Callable[[int], Mapping[str, int]]
"""The present columns of a relation by its oid: name to attnum."""


@dataclass
class _Binding:
    """A relation under one layout of the stream. `places[i]` is column i's place in the tuples."""

    relation: RelationSchema
    layout: RelationMessage
    places: list[int | None]
    rows: RowMessages = field(default_factory=RowMessages)

    @property
    def readable(self) -> bool:
        """Whether its row messages have whole old rows, of the relation that was asked for."""
        return self.layout.full_identity and self.layout.path == self.relation.name.path


class Intake:
    """Takes replication messages one by one, gives chunks."""

    def __init__(
        self,
        relations: Iterable[RelationSchema],
        position: Lsn,
        next_seq: int,
        describe: Describe,
        places: Places,
    ) -> None:
        self._by_path = {r.name.path: r for r in relations}
        self._describe = describe
        self._present = places
        self._bindings: dict[bytes, _Binding] = {}
        self._superseded: list[_Binding] = []
        self._told: set[tuple[RelationName, str, int]] = set()
        self._broken: set[RelationName] = set()
        self._lost: list[Loss] = []
        self._seq = next_seq
        self._begin: Begin | None = None
        self._tx_rows = 0
        self._touched = False
        self.position = position
        self.bytes = 0
        self.ended: list[Transaction] = []
        self.prompt = False
        """A commit or a marker arrived since the last chunk: somebody may wait for it."""

    @property
    def open(self) -> bool:
        """Whether a transaction has begun and not ended."""
        return self._begin is not None

    def take(self, data: memoryview) -> None:
        """One XLogData message."""
        kind = data[pgoutput.HEADER]
        if kind in pgoutput.ROW_KINDS:
            self._take_row(kind, data)
        else:
            self._take_other(chr(kind), bytes(data))

    def keepalive(self, end: Lsn) -> None:
        """Everything before `end` has been sent: the position, unless a transaction is open."""
        if not self.open and self.position <= end:
            self.position = end

    def lose_relation(self, relation: RelationSchema, reason: str) -> None:
        """Outside any transaction: from here on the stream lacks changes of the relation.

        Told once: such a relation is not answered any more either.
        """
        if relation.name in self._broken:
            return
        self._broken.add(relation.name)
        self._lose(relation, reason)
        self.ended.append(Transaction(self._seq, 0, 0, 0))
        self._seq += 1

    def chunk(self) -> Chunk:
        """What was taken since the chunk before."""
        tables: dict[RelationName, list[pa.Table]] = {}
        for binding in [*self._superseded, *self._bindings.values()]:
            if binding.rows.messages:
                tables.setdefault(binding.relation.name, []).append(self._table(binding))
                binding.rows = RowMessages()
        chunk = Chunk(
            {name: pa.concat_tables(parts) for name, parts in tables.items()},
            tuple(self.ended),
            self.position,
            self.open and self._touched,
            tuple(self._lost),
        )
        self._superseded, self._lost, self.ended = [], [], []
        self._told = {told for told in self._told if told[2] == self._seq}
        self.bytes, self.prompt = 0, False
        return chunk

    def _take_row(self, kind: int, data: memoryview) -> None:
        binding = self._bindings.get(bytes(data[26:30]))
        if binding is None or self._begin is None:
            return
        self._touched = True
        if binding.readable:
            message = bytes(data)
            binding.rows.add(message, self._seq, self._begin.xid)
            self.bytes += len(message)
            self._tx_rows += 2 if kind == pgoutput.UPDATE else 1
        else:
            self._lose_unreadable(binding)

    def _take_other(self, kind: str, data: bytes) -> None:
        if kind == "B":
            self._begin = pgoutput.read_begin(data)
            self._tx_rows, self._touched = 0, False
        elif kind == "C":
            self._commit(Lsn(pgoutput.read_commit_end(data)))
        elif kind == "R":
            self._relation(pgoutput.read_relation(data))
        elif kind == "T":
            self._truncate(pgoutput.read_truncate(data))
        elif kind == "M" and data[35:].startswith(MARKER.encode() + b"\0"):
            self.prompt = True

    def _commit(self, end: Lsn) -> None:
        if self._touched and self._begin:
            done = Transaction(self._seq, self._begin.xid, self._begin.committed, self._tx_rows)
            self.ended.append(done)
            self._seq += 1
            self.prompt = True
        self._begin, self._touched = None, False
        self.position = end

    def _truncate(self, oids: Iterable[int]) -> None:
        for oid in oids:
            binding = self._bindings.get(struct.pack("!I", oid))
            if binding:
                self._touched = True
                self._lose(binding.relation, f'"{binding.relation.name}" was emptied by TRUNCATE')

    def _relation(self, message: RelationMessage) -> None:
        key = struct.pack("!I", message.oid)
        old = self._bindings.get(key)
        if old and old.layout == message:
            self._lose_replaced(old.relation, message)
            return
        relation = self._by_path.get(message.path) or (old.relation if old else None)
        if relation is None:
            return
        if old:
            self._superseded.append(old)
        self._bindings[key] = _Binding(relation, message, self._places(relation, message))
        others = [k for k, b in self._bindings.items() if k != key and b.relation is relation]
        if others:
            self._superseded += [self._bindings.pop(k) for k in others]
            self._lose(relation, f'"{relation.name}" was dropped and made anew')
        if not self._bindings[key].readable:
            self._lose_unreadable(self._bindings[key])

    def _lose_unreadable(self, binding: _Binding) -> None:
        relation, path = binding.relation, binding.layout.path
        if path != relation.name.path:
            self._lose(relation, f'"{relation.name}" was renamed to "{".".join(path)}"')
        else:
            self._lose(relation, f'"{relation.name}" no longer has REPLICA IDENTITY FULL')

    def _places(self, relation: RelationSchema, message: RelationMessage) -> list[int | None]:
        """Columns by name; one that is missing, has another type or is another one is lost."""
        types = self._describe([(oid, typmod) for _, oid, typmod in message.columns])
        present = {
            c[0]: (i, t) for i, (c, t) in enumerate(zip(message.columns, types, strict=True))
        }
        places: list[int | None] = []
        for column in relation.columns:
            place, source_type = present.get(column.name, (None, None))
            if place is None:
                self._lose(
                    relation,
                    f'column "{column.name}" of "{relation.name}" was dropped',
                    column.name,
                )
            elif pg_type(str(source_type)) != pg_type(column.source_type):
                place = None
                was = f'was retyped from "{column.source_type}" to "{source_type}"'
                self._lose(
                    relation, f'column "{column.name}" of "{relation.name}" {was}', column.name
                )
            places.append(place)
        self._lose_replaced(relation, message)
        return places

    def _lose_replaced(self, relation: RelationSchema, message: RelationMessage) -> None:
        """Lose the columns that were dropped and added again.

        The stream does not tell a column from an earlier one of its name: the server is asked,
        whose answer may be of a later moment. So such a loss may be told too early, never too late.
        """
        now = self._present(message.oid)
        for column in relation.columns:
            if column.place not in (0, now.get(column.name, column.place)):
                again = f'column "{column.name}" of "{relation.name}" was dropped and added again'
                self._lose(relation, again, column.name)

    def _lose(
        self,
        relation: RelationSchema,
        reason: str,
        column: str | None = None,
        seq: int | None = None,
    ) -> None:
        at = seq or self._seq
        for name in [column] if column else [c.name for c in relation.columns]:
            if (relation.name, name, at) not in self._told:
                self._told.add((relation.name, name, at))
                self._lost.append(Loss(relation.name, name, at, reason))

    def _table(self, binding: _Binding) -> pa.Table:
        wanted = [p for p in binding.places if p is not None]
        rows = pgoutput.decode(binding.rows, len(binding.layout.columns), wanted)
        texts = dict(zip(wanted, rows.texts, strict=True))
        arrays = [self._column(binding, i, texts, rows) for i in range(len(binding.places))]
        names = [f"c{i}" for i in range(len(arrays))]
        tags = [pa.array(rows.seqs), pa.array(rows.counts), pa.array(rows.xids)]
        return pa.table([*arrays, *tags], names=[*names, SEQ, COUNT, TX])

    def _column(
        self, binding: _Binding, number: int, texts: dict[int, pa.Array], rows: pgoutput.DecodedRows
    ) -> pa.Array:
        column, place = binding.relation.columns[number], binding.places[number]
        kept = pg_type(column.source_type)
        if place is None or not isinstance(kept, PgType):
            return pa.nulls(len(rows.seqs), arrow_type(column.type))
        values, bad = convert_good(texts[place], kept)
        for row in bad:
            seq = int(rows.seqs[row].item())
            if (binding.relation.name, column.name, seq) not in self._told:
                what = f"holds {texts[place][row]}{_row_name(binding, texts, row)}"
                reason = f'column "{column.name}" of "{binding.relation.name}" {what}'
                self._lose(binding.relation, reason, column.name, seq)
        return values


def _row_name(binding: _Binding, texts: dict[int, pa.Array], row: int) -> str:
    """The row's primary key, for people."""
    relation = binding.relation
    places = [binding.places[relation.number(k)] for k in relation.primary]
    if not places or None in places:
        return ""
    values = ", ".join(str(texts[p][row]) for p in places if p is not None)
    return f" in the row with ({', '.join(relation.primary)}) = ({values})"
