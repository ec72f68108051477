"""A SQLite file as a source: triggers into a log for changes, read transactions for answers."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from steadyview.changes import RelationName, RelationSchema, StreamPosition
from steadyview.errors import ChangesLost, ConfigError, SourceRefused, SteadyviewError
from steadyview.sources.contract import Examined, Owner
from steadyview.sources.sqlite import log
from steadyview.sources.sqlite.connection import DatabaseFile, writing
from steadyview.sources.sqlite.cuts import Cuts
from steadyview.sources.sqlite.monitor import SqliteMonitor
from steadyview.sources.sqlite.position import LogPosition
from steadyview.sources.sqlite.schema import Table, find_table, read_table
from steadyview.sources.sqlite.snapshot import SqliteSnapshot

_SETTINGS = {"type", "path", "tables"}


class SqliteSource:
    """See `contract.Source`."""

    family = "sqlite"

    def __init__(
        self, name: str, settings: Mapping[str, Any], base_dir: Path, owner: Owner
    ) -> None:
        unknown = set(settings) - _SETTINGS
        if unknown:
            raise ConfigError(
                f'source "{name}" has the unknown setting "{min(unknown)}"',
                hint=f"known are: {', '.join(sorted(_SETTINGS))}",
            )
        if not settings.get("path") or not settings.get("tables"):
            raise ConfigError(f'source "{name}" needs the settings "path" and "tables"')
        self.name = name
        self._owner = owner
        self._spellings = list(dict.fromkeys(map(str, settings["tables"])))
        # Resolved, so that two spellings of one file share their lock (see cuts.py).
        self._file = DatabaseFile(name, (base_dir / str(settings["path"])).resolve())

    def schemas(self) -> list[RelationSchema]:
        """The watched relations as they are now."""
        with self._file.session() as connection:
            return [t.schema for t in self._tables(connection)]

    def unsupported(self) -> dict[RelationName, Mapping[str, str]]:
        """Columns that cannot be watched, by relation and name, with the reason."""
        with self._file.session() as connection:
            tables = self._tables(connection)
        return {t.schema.name: t.unsupported for t in tables if t.unsupported}

    def obstacles(self, relations: Sequence[RelationSchema]) -> list[SteadyviewError]:
        """A file, or a folder, that we may not write to."""
        path = self._file.path
        return [
            SourceRefused(
                f'source "{self.name}" cannot be written to: "{place}"',
                detail="its changes are logged in the file itself",
                hint=f"let the user that runs steadyview write to {place}",
            )
            for place in (path, path.parent)
            if not os.access(place, os.W_OK)
        ]

    def prepare(self, relations: Sequence[RelationSchema]) -> list[str]:
        """WAL mode, the log, and the triggers of the relations."""
        done: list[str] = []
        with self._file.session() as connection:
            for obstacle in self.obstacles(relations):
                raise obstacle
            before = _journal_mode(connection)
            if before != "wal":
                self._switch_to_wal(connection)
                done.append("switched the file to WAL mode")
            with writing(connection):
                if not log.exists(connection):
                    log.create(connection, before)
                    done.append("created the log")
                for relation in relations:
                    table = read_table(connection, self.name, relation.name.path[0])
                    done += filter(None, [log.log_relation(connection, table)])
        return done

    def remove(self) -> list[str]:
        """Drop triggers and log, and give the file back its journal mode."""
        done: list[str] = []
        with self._file.session() as connection:
            if log.exists(connection):
                with writing(connection):
                    before = log.drop(connection)
                done.append("dropped the log and its triggers")
                if before != "wal" and _restore_journal(connection, before):
                    done.append(f'switched the file back to journal mode "{before}"')
        Cuts(self._file.path).remove()
        return done

    def position(self, text: str) -> LogPosition:
        """Read back what `str(position)` wrote."""
        return LogPosition.parse(text)

    def start(self) -> LogPosition:
        """The log's present end."""
        with self._file.session() as connection:
            self._require_log(connection)
            return LogPosition(log.identity(connection), log.last_row(connection))

    def monitor(
        self,
        relations: Sequence[RelationSchema],
        position: StreamPosition,
        next_seq: int,
        proof: str = "",
    ) -> SqliteMonitor:
        """The stream from `position` on."""
        if not isinstance(position, LogPosition):
            raise TypeError(f"not a SQLite position: {position}")
        self._file.identity()
        with self._file.session() as connection:
            self._check_position(connection, position)
        return SqliteMonitor(self._file, relations, position, next_seq)

    def snapshot(self) -> SqliteSnapshot:
        """Freeze the present state."""
        return SqliteSnapshot(self._file)

    def examine(self, relations: Sequence[RelationSchema], proof: str) -> Examined:
        """Not looked at yet."""
        return Examined((), {})

    def close(self) -> None:
        """Nothing is held open between calls."""

    def _tables(self, connection: sqlite3.Connection) -> list[Table]:
        names = [find_table(connection, self.name, s) for s in self._spellings]
        return [read_table(connection, self.name, n) for n in dict.fromkeys(names)]

    def _switch_to_wal(self, connection: sqlite3.Connection) -> None:
        mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        if mode != "wal":
            raise SourceRefused(
                f'source "{self.name}" cannot be switched to WAL mode (it stays in "{mode}")',
                hint="put the file on a local disk",
            )

    def _require_log(self, connection: sqlite3.Connection) -> None:
        if not log.exists(connection):
            raise SourceRefused(f'source "{self.name}" is not set up', hint="run: steadyview run")

    def _check_position(self, connection: sqlite3.Connection, position: LogPosition) -> None:
        connection.execute("BEGIN")
        self._require_log(connection)
        reason = None
        if log.identity(connection) != position.log:
            reason = "its log was removed and set up anew"
        elif position.row < log.pruned(connection):
            reason = f"its log now starts after row {log.pruned(connection)}"
        elif position.row > log.last_row(connection):
            reason = f"its log ends at row {log.last_row(connection)} (was the file restored?)"
        connection.execute("COMMIT")
        if reason:
            raise ChangesLost(
                f'source "{self.name}" no longer keeps the changes after position {position}',
                detail=reason,
                hint=f"run: steadyview source remove {self.name}, then run again",
            )


def _journal_mode(connection: sqlite3.Connection) -> str:
    return str(connection.execute("PRAGMA journal_mode").fetchone()[0])


def _restore_journal(connection: sqlite3.Connection, mode: str) -> bool:
    """Leaving WAL mode needs the file for itself; if others use it, it stays as it is."""
    try:
        found = connection.execute(f"PRAGMA journal_mode = {mode}").fetchone()[0]
    except sqlite3.OperationalError:
        return False
    return bool(found == mode)


def left_behind(name: str, owner: Owner) -> list[str]:
    """What the owner set up, for people."""
    return ["triggers and tables whose names begin with _steadyview, in its file"]
