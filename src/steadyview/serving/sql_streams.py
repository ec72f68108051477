"""Records kept from the update log, in SQL: guarded by their signature, in one statement each.

    seen(r, s, e)   =   _entries[s] >= e;  of an absent record  floor[s] >= e

A new record starts from the floors, which are read in the transaction that writes: whoever raises a
floor waits for it. A record whose sums come to 0 rows stays as a tombstone, with its signature.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from steadyview.serving.contract import Addition, Entries, Put, RecordStore, Signed, TestAndSet
from steadyview.serving.json_texts import key_text
from steadyview.serving.layout import DEAD, ENTRIES, KEY, ROWS, Columns, Records

Values = Sequence[Any]


class SqlStreams(RecordStore):
    """What a store that speaks SQL does with signatures of several streams."""

    mark = "?"
    dead = DEAD
    """The condition for a tombstone."""
    entries_type = "TEXT"
    reached: str
    """That the floors, or `{place}`, have reached all entries of a record; its parameter: the
    table's name."""

    # --- what a family says ------------------------------------------------------------------

    @abstractmethod
    def run(self, sql: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """One statement, its rows."""

    @abstractmethod
    def changed(self, sql: str, values: Values = ()) -> int:
        """One statement, how many rows it changed."""

    @abstractmethod
    def each(self, sql: str, rows: Iterable[Values]) -> None:
        """One statement for each of these rows, in their order."""

    @abstractmethod
    def writing(self) -> AbstractContextManager[None]:
        """One transaction that changes the registry: at most one at a time in the whole store."""

    @abstractmethod
    def floors(self, records: Records) -> dict[str, int]:
        """The floors above 0, by stream, which nobody raises before the transaction's end."""

    @abstractmethod
    def storing(self) -> AbstractContextManager[None]:
        """One transaction round operations on records; done again where the store says so."""

    @abstractmethod
    def column_type(self, type_: str) -> str:
        """How the store keeps a Spark type."""

    @abstractmethod
    def encoded(self, value: Any, type_: str) -> Any:
        """A value of the view as a parameter."""

    @abstractmethod
    def decoded(self, value: Any, type_: str) -> Any:
        """A stored value as the view has it."""

    @abstractmethod
    def entry(self, entries: str, stream: str) -> str:
        """The entry of a stream in a signature, 0 if there is none."""

    @abstractmethod
    def with_entry(self, entries: str, stream: str, entry: str) -> str:
        """A signature with another entry of a stream."""

    @abstractmethod
    def plus(self, left: str, right: str, type_: str) -> str:
        """The sum of two columns, exactly."""

    def bound(self, type_: str) -> str:
        """A parameter of a type."""
        return f"{self.mark}::{type_}" if self.mark == "%s" else self.mark

    def quoted(self, name: str) -> str:
        """An identifier."""
        return '"' + name.replace('"', '""') + '"'

    # --- the operations ----------------------------------------------------------------------

    def add(self, records: Records, stream: str, additions: Sequence[Addition]) -> None:
        """See the contract."""
        sums = records.layout.sums
        table = self.quoted(records.name)
        changed = [
            f"{self.quoted(n)} = "
            + self.plus(f"{table}.{self.quoted(n)}", f"excluded.{self.quoted(n)}", t)
            for n, t in sums
        ]
        gone = f"{DEAD} = ({table}.{ROWS} + excluded.{ROWS} = 0)"
        sql = self._guarded(records, sums, stream, [*changed, gone])
        with self.storing():
            floors = self.floors(records)
            new = [a for a in additions if a.entry > floors.get(stream, 0)]
            # of an absent record, too: what an entry adds may be nothing
            dead = [a.sums[ROWS] == 0 for a in new]
            each = zip(new, dead, strict=True)
            rows = (
                self._row(records, sums, {**floors, stream: a.entry}, a.key, a.sums, dead=d)
                for a, d in each
            )
            self.each(sql, rows)

    def put(self, records: Records, stream: str, puts: Sequence[Put]) -> None:
        """See the contract."""
        columns = records.layout.values
        changed = [f"{self.quoted(n)} = excluded.{self.quoted(n)}" for n, _ in columns]
        sql = self._guarded(records, columns, stream, [*changed, f"{DEAD} = excluded.{DEAD}"])
        with self.storing():
            floors = self.floors(records)
            new = [p for p in puts if p.entry > floors.get(stream, 0)]
            rows = (
                self._row(
                    records,
                    columns,
                    {**floors, stream: p.entry},
                    p.key,
                    p.values,
                    dead=p.values is None,
                )
                for p in new
            )
            self.each(sql, rows)

    def signed(self, records: Records, keys: Sequence[tuple[Any, ...]]) -> list[Signed]:
        """See the contract."""
        columns = _stored(records)
        listed = ", ".join([KEY, ENTRIES, DEAD, *(self.quoted(n) for n, _ in columns)])
        texts = [self._key(records, key) for key in keys]
        marks = ", ".join([self.mark] * len(texts))
        sql = f"SELECT {listed} FROM {self.quoted(records.name)} WHERE {KEY} IN ({marks})"
        with self.storing():
            floors = self.floors(records)
            found = {row[0]: self._signed(row[1:], columns) for row in self.run(sql, texts)}
        return [found.get(text) or Signed(None, floors) for text in texts]

    def test_and_set(self, records: Records, tests: Sequence[TestAndSet]) -> list[bool]:
        """See the contract."""
        with self.storing():
            floors = self.floors(records)
            # in the order of keys: two managers never wait for each other
            order = sorted(range(len(tests)), key=lambda i: self._key(records, tests[i].key))
            passed = {i: self._tested(records, tests[i], floors) for i in order}
        return [passed[i] for i in range(len(tests))]

    # --- statements --------------------------------------------------------------------------

    def _guarded(
        self, records: Records, columns: Columns, stream: str, changed: Sequence[str]
    ) -> str:
        """Insert a record, or change it if its entry of the stream is less than the new one."""
        table, new = self.quoted(records.name), f"excluded.{ENTRIES}"
        entry = self.entry(new, stream)
        old = f"{table}.{ENTRIES}"
        sets = [*changed, f"{ENTRIES} = {self.with_entry(old, stream, entry)}"]
        return (
            f"{self._insert(records, columns)} ON CONFLICT ({KEY}) DO UPDATE SET {', '.join(sets)}"
            f" WHERE {self.entry(old, stream)} < {entry}"
        )

    def _insert(self, records: Records, columns: Columns) -> str:
        both = (*records.layout.keys, *columns)
        names = ", ".join([KEY, *(self.quoted(n) for n, _ in both), ENTRIES, DEAD])
        marks = ["TEXT", *(self.column_type(t) for _, t in both)]
        marks += [self.entries_type, self.column_type("BOOLEAN")]
        values = ", ".join(self.bound(t) for t in marks)
        return f"INSERT INTO {self.quoted(records.name)} ({names}) VALUES ({values})"

    def _row(
        self,
        records: Records,
        columns: Columns,
        entries: Entries,
        key: tuple[Any, ...],
        values: Any,
        *,
        dead: bool,
    ) -> Values:
        keys = [self.encoded(v, t) for v, (_, t) in zip(key, records.layout.keys, strict=True)]
        given = values or {}
        stored = [self.encoded(given.get(n), t) for n, t in columns]
        marked = self.encoded(dead, "BOOLEAN")
        return (self._key(records, key), *keys, *stored, entries_text(entries), marked)

    def _key(self, records: Records, key: tuple[Any, ...]) -> str:
        return key_text(key, [type_ for _, type_ in records.layout.keys])

    def _signed(self, row: Values, columns: Columns) -> Signed:
        entries = json.loads(row[0]) if isinstance(row[0], str) else dict(row[0])
        if row[1]:
            return Signed(None, entries)
        pairs = zip(columns, row[2:], strict=True)
        return Signed({n: self.decoded(v, t) for (n, t), v in pairs}, entries)

    def _tested(self, records: Records, test: TestAndSet, floors: Entries) -> bool:
        columns = _stored(records)
        row = self._row(
            records, columns, test.signature, test.key, test.values, dead=test.values is None
        )
        expected, key = entries_text(test.expected), self._key(records, test.key)
        bound, table = self.bound(self.entries_type), self.quoted(records.name)
        same = f"{table}.{ENTRIES} = {bound}"
        if not test.there:
            sets = [f"{self.quoted(n)} = excluded.{self.quoted(n)}" for n, _ in columns]
            sets += [f"{n} = excluded.{n}" for n in (ENTRIES, DEAD)]
            update = f"DO UPDATE SET {', '.join(sets)} WHERE {table}.{self.dead} AND {same}"
            if dict(test.expected) == dict(floors):
                sql = f"{self._insert(records, columns)} ON CONFLICT ({KEY}) {update}"
                return self.changed(sql, (*row, expected)) == 1
        types = [*(self.column_type(t) for _, t in columns), self.entries_type]
        types += [self.column_type("BOOLEAN")]
        names = [*(self.quoted(n) for n, _ in columns), ENTRIES, DEAD]
        sets = [f"{n} = {self.bound(t)}" for n, t in zip(names, types, strict=True)]
        there = f"{KEY} = {self.mark} AND {'NOT ' * test.there}{self.dead}"
        sql = f"UPDATE {table} SET {', '.join(sets)} WHERE {there} AND {same}"
        values = row[1 + len(records.layout.key) :]
        return self.changed(sql, (*values, key, expected)) == 1


def entries_text(entries: Entries) -> str:
    """A signature as one text, the same for the same one."""
    return json.dumps(dict(entries), sort_keys=True, separators=(",", ":"))


def _stored(records: Records) -> Columns:
    """All columns but those of the key: the view's, then the hidden sums."""
    key = records.layout.key
    return tuple((n, t) for n, t in records.layout.stored if n not in key)


