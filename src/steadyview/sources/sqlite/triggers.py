"""The triggers that write every row image of a table into the log.

SQLite does not fire DELETE triggers for rows that REPLACE removes (unless the writer's connection
has recursive_triggers on, which we cannot know). So:

    before insert/update   rows that share a unique key with the new row are noted as *displaced*
    after insert/update    noted rows that are gone now were replaced: log them as -1
    after delete           the row is logged as -1 and its note dropped, so it is never logged twice

Invariant: a note equals its row's present content, or its row was removed by REPLACE in the
statement under way. Notes of committed transactions mean nothing; they are dropped when they become
many.
Not promised: a REPLACE whose own BEFORE trigger inserts into the same table after more than
`_MANY_NOTES` ignored inserts in one transaction; changes by connections with triggers switched off.
"""

from __future__ import annotations

from collections.abc import Sequence

from steadyview.sources.sqlite.connection import quoted
from steadyview.sources.sqlite.schema import Table, UniqueKey

LOG = "_steadyview_log"
_MANY_NOTES = 64
_TIMES = ("BEFORE INSERT", "AFTER INSERT", "BEFORE UPDATE", "AFTER UPDATE", "AFTER DELETE")


def trigger_names(number: int) -> list[str]:
    """The names of relation `number`'s triggers."""
    return [f"_steadyview_{number}_{time.lower().replace(' ', '_')}" for time in _TIMES]


def displaced_table(number: int) -> str:
    """The name of relation `number`'s notes."""
    return f"_steadyview_{number}_displaced"


def create_statements(number: int, table: Table, columns: Sequence[str | None]) -> list[str]:
    """The notes table and the five triggers; `columns[i]` goes to the log's column v{i}.

    None is the place of a column that is no longer there.
    """
    return _Writer(number, table, columns).statements()


class _Writer:
    """Writes the SQL for one table. In it, `t` is a row of the table; notes have k{i} and v{i}."""

    def __init__(self, number: int, table: Table, columns: Sequence[str | None]) -> None:
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
            self._log_replaced(self._gone()) + self._log("NEW", 1),
            self._note(f"({self._conflicts()}) AND NOT ({self._same('t', 'OLD')})"),
            self._log_replaced(f"NOT ({self._noted('OLD')}) AND ({self._gone()})")
            + [*self._forget_old(), *self._log("OLD", -1), *self._log("NEW", 1)],
            [*self._forget_old(), *self._log("OLD", -1)],
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

    def _log_replaced(self, gone: str) -> list[str]:
        return [
            f"INSERT INTO {LOG} (relation, count, {self.values}) "
            f"SELECT {self.number}, -1, {self.values} FROM {self.notes} WHERE {gone}",
            f"DELETE FROM {self.notes} WHERE {gone}",
        ]

    def _forget_old(self) -> list[str]:
        return [f"DELETE FROM {self.notes} WHERE {self._noted('OLD')}"]

    def _log(self, row: str, count: int) -> list[str]:
        return [
            f"INSERT INTO {LOG} (relation, count, {self.values}) "
            f"VALUES ({self.number}, {count}, {self._row(row)})"
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
