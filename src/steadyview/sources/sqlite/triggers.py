"""The triggers that write every row image of a table into the log, and how they are known again.

SQLite does not fire DELETE triggers for rows that REPLACE removes (unless the writer's connection
has recursive_triggers on, which we cannot know). So:

    before insert/update   rows that share a unique key with the new row are noted as *displaced*
    after insert/update    noted rows that are gone now were replaced: log them as -1
    after delete           the row is logged as -1 and its note dropped, so it is never logged twice

Invariant: a note equals its row's present content, or its row was removed by REPLACE in the
statement under way. Notes of committed transactions mean nothing; they are dropped when they become
many.

SQLite rewrites the text of a trigger when a column is renamed, so the text says which column goes
to which place of the log *now*. *Guards* are made after a table's five: whatever is dropped and
created again comes after them in sqlite_master. There are three, for nothing else keeps all orders:

    a trigger   VACUUM and every dump keep it; who drops all triggers and restores them, does not
    a view      VACUUM keeps it behind the triggers; a dump that is sorted by type does not
    an index    such a dump keeps it behind the triggers; VACUUM does not

So the five are the first ones if they are before the trigger, and before the view or the index.
Each logged row is counted as well: rows that are deleted from the log's end are missed.
Not promised: a REPLACE whose own BEFORE trigger inserts into the same table after more than
`_MANY_NOTES` ignored inserts in one transaction; changes by connections with triggers switched off.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from steadyview.sources.sqlite.connection import quoted
from steadyview.sources.sqlite.schema import FoundTable, UniqueKey

LOG = "_steadyview_log"
RELATIONS = "_steadyview_relations"
WRITTEN = "_steadyview_written"
_MANY_NOTES = 64
_TIMES = ("BEFORE INSERT", "AFTER INSERT", "BEFORE UPDATE", "AFTER UPDATE", "AFTER DELETE")


def trigger_names(number: int) -> list[str]:
    """The names of relation `number`'s triggers."""
    return [f"_steadyview_{number}_{time.lower().replace(' ', '_')}" for time in _TIMES]


def guard_names(number: int) -> dict[str, str]:
    """The names of relation `number`'s guards, by their type."""
    plain = f"_steadyview_{number}_guard"
    return {"trigger": plain, "view": f"{plain}_view", "index": f"{plain}_index"}


def displaced_table(number: int) -> str:
    """The name of relation `number`'s notes."""
    return f"_steadyview_{number}_displaced"


def create_statements(number: int, table: FoundTable, columns: Sequence[str | None]) -> list[str]:
    """The notes table and the five triggers; `columns[i]` goes to the log's column v{i}.

    None is the place of a column that is no longer there.
    """
    return _Writer(number, table, columns).statements()


def create_guards(number: int) -> list[str]:
    """The guards, which do nothing; they must be younger than the five."""
    names = guard_names(number)
    return [
        f"CREATE TRIGGER {names['trigger']} BEFORE DELETE ON {RELATIONS}"
        " WHEN 0 BEGIN SELECT 1; END",
        f"CREATE VIEW {names['view']} AS SELECT {number} AS relation",
        f"CREATE INDEX {names['index']} ON {RELATIONS} (number)",
    ]


def counts(text: str) -> bool:
    """Whether a trigger counts the rows that it logs; those of older versions do not."""
    return _COUNTED in text


_COUNTED = f"UPDATE {WRITTEN} SET seq = seq + "
_NAME = r'"(?:[^"]|"")*"'
_LOGGED = re.compile(
    rf"INSERT INTO {LOG} \([a-z0-9, ]+\) VALUES \(\d+, -1, (?:random\(\), )?(.*)\); END", re.DOTALL
)
_VALUE = re.compile(rf"NULL|OLD\.({_NAME})")
_FIELD = re.compile(rf"\b(NEW|OLD|t)\.({_NAME})")


def logged_columns(delete_trigger: str) -> tuple[str | None, ...] | None:
    """The columns that the text of an AFTER DELETE trigger writes to v0, v1, ...; None if unclear.

    >>> logged_columns('... INSERT INTO _steadyview_log (relation, count, nonce, v0, v1)'
    ...                ' VALUES (1, -1, random(), OLD."a", NULL); END')
    ('a', None)
    """
    found = _LOGGED.search(delete_trigger)
    if found is None:
        return None
    names = [value[1] for value in _VALUE.finditer(found[1])]
    return tuple(None if n is None else n[1:-1].replace('""', '"') for n in names)


def fingerprint(texts: Sequence[str], table: FoundTable, columns: Sequence[str | None]) -> str:
    """What stays of the triggers' texts, in order, when columns are renamed; `columns` by place.

    If a column is the rowid, SQLite renames that too.
    """
    places = {quoted(c): str(i) for i, c in enumerate(columns) if c is not None}
    if table.alias is not None:
        places[quoted(table.identity[0])] = places.get(quoted(table.alias), "none")
    plain = [_FIELD.sub(lambda m: f"{m[1]}.{places.get(m[2], m[2])}", text) for text in texts]
    return hashlib.sha256("\0".join(plain).encode("utf-8", "surrogateescape")).hexdigest()


class _Writer:
    """Writes the SQL for one table. In it, `t` is a row of the table; notes have k{i} and v{i}."""

    def __init__(self, number: int, table: FoundTable, columns: Sequence[str | None]) -> None:
        self.number = number
        self.table = table
        self.columns = columns
        self.target = quoted(table.name)
        self.notes = displaced_table(number)
        self.keys = [f"k{i}" for i in range(len(table.identity))]
        self.values = ", ".join(f"v{i}" for i in range(len(columns)))

    def statements(self) -> list[str]:
        """Everything to create, in order."""
        bodies = [
            self._note(self._conflicts()),
            self._log_replaced(self._gone(), besides=1) + self._log("NEW", 1),
            self._note(f"({self._conflicts()}) AND NOT ({self._same('t', 'OLD')})"),
            self._log_replaced(f"NOT ({self._noted('OLD')}) AND ({self._gone()})", besides=2)
            + [*self._forget_old(), *self._log("OLD", -1), *self._log("NEW", 1)],
            [*self._forget_old(), f"{_COUNTED}1", *self._log("OLD", -1)],
        ]
        guards = [
            self._when(self._conflicts()),
            "",
            self._when(
                f"({self._key_changed()}) AND ({self._conflicts()})", self._same("t", "OLD")
            ),
            "",
            "",
        ]
        triggers = [
            f"CREATE TRIGGER {name} {time} ON {self.target} {guard}BEGIN {'; '.join(body)}; END"
            for name, time, guard, body in zip(
                trigger_names(self.number), _TIMES, guards, bodies, strict=True
            )
        ]
        fields = ", ".join([*self.keys, self.values])
        return [f"CREATE TABLE {self.notes} ({fields})", *triggers]

    def _when(self, condition: str, besides: str = "") -> str:
        besides = f" AND NOT ({besides})" if besides else ""
        return f"WHEN EXISTS (SELECT 1 FROM {self.target} AS t WHERE ({condition}){besides}) "

    def _note(self, condition: str) -> list[str]:
        """Note the rows in conflict, afresh.

        No statement here can itself run into a conflict: the writer's OR clause would rule it.
        """
        found = f"FROM {self.target} AS t WHERE {condition}"
        identity = ", ".join(f"t.{quoted(c)}" for c in self.table.identity)
        row, keys = self._row("t"), ", ".join(self.keys)
        return [
            f"DELETE FROM {self.notes} WHERE (SELECT count(*) FROM {self.notes}) > {_MANY_NOTES}",
            f"DELETE FROM {self.notes} WHERE ({keys}) IN (SELECT {identity} {found})",
            f"INSERT INTO {self.notes} SELECT {identity}, {row} {found}",
        ]

    def _log_replaced(self, gone: str, besides: int) -> list[str]:
        """Log the rows that are gone; they are counted, and so many that are logged after them."""
        return [
            f"INSERT INTO {LOG} (relation, count, nonce, {self.values}) "
            f"SELECT {self.number}, -1, random(), {self.values} FROM {self.notes} WHERE {gone}",
            f"{_COUNTED}changes() + {besides}",
            f"DELETE FROM {self.notes} WHERE {gone}",
        ]

    def _forget_old(self) -> list[str]:
        return [f"DELETE FROM {self.notes} WHERE {self._noted('OLD')}"]

    def _log(self, row: str, count: int) -> list[str]:
        return [
            f"INSERT INTO {LOG} (relation, count, nonce, {self.values}) "
            f"VALUES ({self.number}, {count}, random(), {self._row(row)})"
        ]

    def _row(self, row: str) -> str:
        return ", ".join("NULL" if c is None else f"{row}.{quoted(c)}" for c in self.columns)

    def _conflicts(self) -> str:
        return " OR ".join(self._conflict(k) for k in dict.fromkeys(self.table.keys))

    def _conflict(self, key: UniqueKey) -> str:
        """Whether row t has the new row's key. NULL may yet turn into the column's default."""
        terms = []
        for column, collation in zip(key.columns, key.collations, strict=True):
            new = f"NEW.{quoted(column)}"
            if column in self.table.defaults:
                new = f"coalesce({new}, {self.table.defaults[column]})"
            collate = f" COLLATE {quoted(collation)}" if collation else ""
            terms.append(f"t.{quoted(column)} = {new}{collate}")
        return "(" + " AND ".join(terms) + ")"

    def _key_changed(self) -> str:
        columns = dict.fromkeys(c for key in self.table.keys for c in key.columns)
        return " OR ".join(f"OLD.{quoted(c)} IS NOT NEW.{quoted(c)}" for c in columns)

    def _same(self, left: str, right: str) -> str:
        return " AND ".join(
            f"{left}.{quoted(c)} = {right}.{quoted(c)}" for c in self.table.identity
        )

    def _noted(self, row: str) -> str:
        """Whether a note is about the row called NEW, OLD or t."""
        pairs = zip(self.keys, self.table.identity, strict=True)
        return " AND ".join(f"{row}.{quoted(c)} = {self.notes}.{k}" for k, c in pairs)

    def _gone(self) -> str:
        """Whether a note's row is gone, or the new row took its place."""
        there = f"SELECT 1 FROM {self.target} AS t WHERE {self._noted('t')}"
        return f"({self._noted('NEW')}) OR NOT EXISTS ({there})"
