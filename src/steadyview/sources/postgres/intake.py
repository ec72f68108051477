"""From replication messages to chunks: transactions counted, rows typed, losses named.

Invariant: between two calls of `chunk`, `ended` are the transactions whose commit was taken since,
and every row message taken since is held exactly once. A transaction gets a number only if it
changed a watched relation (TRUNCATE included).

A loss is told once per column and transaction, in every transaction that loses something: a view
made anew after one loss must hear of the next. A value that cannot be kept is NULL, those around it
are not. A relation that is lost is one loss, of no column.

A relation's identity is known from the server's catalog (`evidence.py`), and the stream must
describe it so: its oid under its name, its columns in the order of their numbers. What was written
under another identity is lost in every transaction that writes so, for the catalog shows nothing
once the identity is back. Only a look into the catalog, which tells the loss itself, makes another
one known.

A chunk is ended before a transaction that is dated beyond a time at which it is to be divided. The
server draws a commit's time some microseconds before its place in the log: of two that commit at
such a time, the log's order decides.

What was captured before, up to the position where the intake begins, is replayed: its commits are
counted into the history and its layouts are kept, its rows and losses are dropped. When the replay
is over, the history must be the one that is remembered (`proof.py`); else nothing more is taken.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

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
from steadyview.sources.postgres.evidence import Identity
from steadyview.sources.postgres.pgoutput import Begin, RelationMessage, RowMessages
from steadyview.sources.postgres.position import Lsn
from steadyview.sources.postgres.proof import MARKER, PastCommits, check_history
from steadyview.sources.postgres.types import PgType, convert_good, pg_type

Describe = Callable[[Sequence[tuple[int, int]]], list[str]]
"""Type oids and modifiers to source types, as `schema.py` writes them."""


@dataclass(frozen=True)
class Beginning:
    """Where the intake begins: what was captured before `position`, None if nothing was."""

    source: str
    warehouse: str
    position: Lsn
    next_seq: int
    captured: PastCommits | None = None


@dataclass
class _Binding:
    """A relation under one layout of the stream. `places[i]` is column i's place in the tuples.

    `strange`: what is lost by every change that is described so, for it is not the known identity.
    """

    relation: RelationSchema
    layout: RelationMessage
    places: list[int | None]
    strange: list[tuple[RelationName, str | None, str]]
    rows: RowMessages = field(default_factory=RowMessages)

    @property
    def readable(self) -> bool:
        """Whether its row messages have whole old rows, of the relation that was asked for."""
        return self.layout.full_identity and self.layout.path == self.relation.name.path


class Intake:
    """Takes replication messages one by one, gives chunks."""

    def __init__(
        self, relations: Iterable[RelationSchema], beginning: Beginning, describe: Describe
    ) -> None:
        self._by_path = {r.name.path: r for r in relations}
        self._known: dict[RelationName, Identity] = {}
        self._beginning = beginning
        self._describe = describe
        self._bindings: dict[bytes, _Binding] = {}
        self._superseded: list[_Binding] = []
        self._told: set[tuple[RelationName, str | None, int]] = set()
        self._lost: list[Loss] = []
        self._seq = beginning.next_seq
        self._begin: Begin | None = None
        self._marker = ""
        self._tx_rows = 0
        self._touched = False
        self.identify(self._by_path.values())
        captured = beginning.captured
        self.position = beginning.position
        self.history = PastCommits(captured.since if captured else beginning.position)
        self.replaying = captured is not None
        self.unmarked = 0
        """Transactions of watched relations since the last marker of ours."""
        self.altered = False
        """A relation's layout came again: something was done to it."""
        self.bytes = 0
        self.ended: list[Transaction] = []
        self.prompt = False
        """A commit or a marker arrived since the last chunk: somebody may wait for it."""
        self._times: Sequence[int] = ()
        self._next: Begin | None = None
        self._latest = 0
        self._earliest: int | None = None

    @property
    def cut(self) -> bool:
        """Whether what was taken is to be a chunk of its own, before anything more is taken."""
        return self._next is not None

    def divide(self, times: Sequence[int]) -> None:
        """No chunk to come is to hold transactions dated on both sides of one of these times."""
        self._times = times

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
            self._end_replay()
            self.position = end

    def lose(self, losses: Sequence[Loss], now: int) -> None:
        """Outside any transaction: from here on the stream may lack something."""
        for loss in losses:
            self._lose(loss.relation, loss.reason, loss.column)
        self.ended.append(Transaction(self._seq, 0, now, 0))
        self._seq += 1

    def identify(self, relations: Iterable[RelationSchema]) -> None:
        """From here on these are the relations' identities, as far as there is evidence."""
        found = {r.name: Identity.of(r) for r in relations}
        known = {**self._known, **{name: i for name, i in found.items() if i is not None}}
        if known != self._known:
            self._known = known
            for key, binding in list(self._bindings.items()):
                del self._bindings[key]
                self._superseded.append(binding)
                self._bind(key, binding.layout)

    def chunk(self) -> Chunk:
        """What was taken since the chunk before."""
        tables: dict[RelationName, list[pa.Table]] = {}
        for binding in [*self._superseded, *self._bindings.values()]:
            if binding.rows.messages:
                tables.setdefault(binding.relation.name, []).append(self._table(binding))
                binding.rows = RowMessages()
        if self._begin is not None and self._touched:
            self._dated(self._begin)
        early, late = self._earliest, self._latest
        chunk = Chunk(
            {name: pa.concat_tables(parts) for name, parts in tables.items()},
            tuple(self.ended),
            self.position,
            self.open and self._touched,
            tuple(self._lost),
            late,
            tuple(t for t in self._times if early is not None and early <= t < late),
        )
        self._superseded, self._lost, self.ended = [], [], []
        self._told = {told for told in self._told if told[2] == self._seq}
        self.bytes, self.prompt, self._earliest = 0, False, None
        begin, self._next = self._next, None
        if begin is not None:
            self._start(begin)
        return chunk

    def _dated(self, begin: Begin) -> None:
        """Rows of this transaction are in the chunk."""
        self._latest = max(self._latest, begin.committed)
        known = begin.committed if self._earliest is None else self._earliest
        self._earliest = min(known, begin.committed)

    def _divides(self, begin: Begin) -> bool:
        """Whether what was taken so far must not be in one chunk with this transaction."""
        return bool(self.ended) and any(self._latest <= t < begin.committed for t in self._times)

    def _take_row(self, kind: int, data: memoryview) -> None:
        binding = self._bindings.get(bytes(data[26:30]))
        if binding is None or self._begin is None:
            return
        self._touched = True
        if self.replaying:
            return
        self._lose_strange(binding)
        if binding.readable and (kind == pgoutput.INSERT or data[30] == pgoutput.WHOLE_OLD_ROW):
            message = bytes(data)
            binding.rows.add(message, self._seq, self._begin.xid)
            self.bytes += len(message)
            self._tx_rows += 2 if kind == pgoutput.UPDATE else 1
        else:
            self._lose_unreadable(binding)

    def _take_other(self, kind: str, data: bytes) -> None:
        if kind == "B":
            self._start(pgoutput.read_begin(data))
        elif kind == "C":
            self._commit(Lsn(pgoutput.read_commit_end(data)))
        elif kind == "R":
            self._relation(pgoutput.read_relation(data))
        elif kind == "T":
            self._truncate(pgoutput.read_truncate(data))
        elif kind == "M":
            self._message(*pgoutput.read_message(data))

    def _message(self, prefix: str, text: str) -> None:
        if prefix == MARKER:
            self.prompt = not self.replaying
            if text.startswith(self._beginning.warehouse):
                self._marker = text

    def _start(self, begin: Begin) -> None:
        if self._divides(begin):
            self._next = begin
            return
        if begin.lsn >= self.position.value:
            self._end_replay()
        self._begin = begin
        self._tx_rows, self._touched, self._marker = 0, False, ""

    def _end_replay(self) -> None:
        if self.replaying and self._beginning.captured:
            check_history(self._beginning.source, self._beginning.captured, self.history)
        self.replaying = False

    def _commit(self, end: Lsn) -> None:
        begin, self._begin = self._begin, None
        if begin is None:
            return
        self.history = self.history.after(begin, self._marker)
        self.unmarked = 0 if self._marker else self.unmarked + self._touched
        if self.replaying:
            return
        if self._touched:
            self._dated(begin)
            self.ended.append(Transaction(self._seq, begin.xid, begin.committed, self._tx_rows))
            self._seq += 1
            self.prompt = True
        self._touched = False
        self.position = end

    def _truncate(self, oids: Iterable[int]) -> None:
        for oid in oids:
            binding = self._bindings.get(struct.pack("!I", oid))
            if binding:
                self._touched = True
                name = binding.relation.name
                self._lose(name, f'"{name}" was emptied by TRUNCATE')
                self._lose_strange(binding)

    def _relation(self, message: RelationMessage) -> None:
        key = struct.pack("!I", message.oid)
        old = self._bindings.get(key)
        self.altered = self.altered or not self.replaying
        if old and old.layout == message:
            return
        if old:
            self._superseded.append(self._bindings.pop(key))
        self._bind(key, message, old)

    def _bind(self, key: bytes, message: RelationMessage, old: _Binding | None = None) -> None:
        """Under the relation of that name; one that we know by its oid was renamed."""
        by_oid = [n for n, known in self._known.items() if known.oid == message.oid]
        renamed = self._by_path.get(by_oid[0].path) if by_oid else old.relation if old else None
        relation = self._by_path.get(message.path) or renamed
        if relation is None:
            return
        self._known.setdefault(relation.name, _described(message))
        places = self._places(relation, message)
        strange = [*self._strange(relation, message)]
        if renamed and renamed is not relation:
            strange.append((renamed.name, None, _renamed(renamed.name, message.path)))
        binding = self._bindings[key] = _Binding(relation, message, places, strange)
        if not binding.readable:
            self._lose_unreadable(binding)

    def _strange(
        self, relation: RelationSchema, message: RelationMessage
    ) -> Iterator[tuple[RelationName, str | None, str]]:
        """What is not as it is known of the relation: it is another table, or has other columns."""
        name, known = relation.name, self._known[relation.name]
        if known.oid != message.oid:
            reason = f'"{name}" was another table (made anew, or swapped by renaming)'
            yield name, None, reason
            return
        moved = misplaced([c for c, _, _ in message.columns], known.places)
        for column in relation.columns:
            if column.name in moved:
                reason = f'column "{column.name}" of "{name}" was another one (renamed, or swapped)'
                yield name, column.name, reason

    def _lose_strange(self, binding: _Binding) -> None:
        for name, column, reason in binding.strange:
            self._lose(name, reason, column)

    def _lose_unreadable(self, binding: _Binding) -> None:
        name, path = binding.relation.name, binding.layout.path
        if path != name.path:
            self._lose(name, _renamed(name, path))
        else:
            self._lose(name, f'"{name}" no longer has REPLICA IDENTITY FULL')

    def _places(self, relation: RelationSchema, message: RelationMessage) -> list[int | None]:
        """Columns by name; one that is missing or has another type is lost."""
        types = self._describe([(oid, typmod) for _, oid, typmod in message.columns])
        present = {
            c[0]: (i, t) for i, (c, t) in enumerate(zip(message.columns, types, strict=True))
        }
        places: list[int | None] = []
        for column in relation.columns:
            place, source_type = present.get(column.name, (None, None))
            was = ""
            if place is None:
                was = "was dropped"
            elif pg_type(str(source_type)) != pg_type(column.source_type):
                was = f'was retyped from "{column.source_type}" to "{source_type}"'
            if was:
                reason = f'column "{column.name}" of "{relation.name}" {was}'
                self._lose(relation.name, reason, column.name)
            places.append(None if was else place)
        return places

    def _lose(
        self, name: RelationName, reason: str, column: str | None = None, seq: int | None = None
    ) -> None:
        told = (name, column, seq or self._seq)
        if told not in self._told and not self.replaying:
            self._told.add(told)
            # only a single value is lost at a seq that is not the present one
            self._lost.append(Loss(*told, reason, mendable=seq is not None))

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
                self._lose(binding.relation.name, reason, column.name, seq)
        return values


def _row_name(binding: _Binding, texts: dict[int, pa.Array], row: int) -> str:
    """The row's primary key, for people."""
    relation = binding.relation
    places = [binding.places[relation.number(k)] for k in relation.primary]
    if not places or None in places:
        return ""
    values = ", ".join(str(texts[p][row]) for p in places if p is not None)
    return f" in the row with ({', '.join(relation.primary)}) = ({values})"


def _described(message: RelationMessage) -> Identity:
    """The identity of a relation that was never looked at: what the stream first says."""
    return Identity(message.oid, {c[0]: i for i, c in enumerate(message.columns, 1)})


def _renamed(name: RelationName, path: tuple[str, str]) -> str:
    return f'"{name}" was renamed to "{".".join(path)}"'


def misplaced(order: Sequence[str], numbers: Mapping[str, int]) -> set[str]:
    """Columns that cannot have the numbers they are known by, in a tuple of this order.

    Tuples are in the order of the numbers, without those that were dropped; no number is given
    twice. Of two columns that changed places it is not known which one is another.

    >>> sorted(misplaced(["id", "b", "a"], {"id": 1, "a": 2, "b": 3}))
    ['a', 'b']
    >>> misplaced(["id", "old_a", "a"], {"id": 1, "a": 2})
    {'a'}
    >>> misplaced(["id", "since_dropped", "b", "new"], {"id": 1, "b": 3})
    set()
    """
    known = [(place, numbers[c], c) for place, c in enumerate(order, 1) if c in numbers]
    found = {c for place, number, c in known if place > number}
    for (_, first, a), (_, second, b) in combinations(known, 2):
        if first > second:
            found |= {a, b}
    return found
