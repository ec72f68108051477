"""A SQLite file as a source: triggers into a log for changes, read transactions for answers.

The log belongs to one warehouse, which alone reads, prunes and removes it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from steadyview.changes import Loss, RelationName, RelationSchema, StreamPosition
from steadyview.errors import ChangesLost, ConfigError, SourceRefused, SteadyviewError
from steadyview.sources.contract import Examined, Owner
from steadyview.sources.sqlite import evidence, log, setup
from steadyview.sources.sqlite.connection import DatabaseFile, reading, writing
from steadyview.sources.sqlite.cuts import Cuts
from steadyview.sources.sqlite.monitor import SqliteMonitor
from steadyview.sources.sqlite.position import LogPosition
from steadyview.sources.sqlite.proof import Proof, diverged
from steadyview.sources.sqlite.schema import FoundTable, find_table, read_table
from steadyview.sources.sqlite.snapshot import SqliteSnapshot

_SETTINGS = {"type", "path", "tables", "audit"}


class SqliteSource:
    """See `contract.Source`."""

    family = "sqlite"
    unseen = (
        "rows written by connections with triggers switched off,"
        " or while all triggers and views were dropped for a while"
    )

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

    @property
    def patience(self) -> float:
        """Seconds to wait while another process has the file locked, before giving up."""
        return self._file.patience

    @patience.setter
    def patience(self, seconds: float) -> None:
        self._file = replace(self._file, patience=seconds)

    def schemas(self) -> list[RelationSchema]:
        """The watched relations as they are now."""
        with self._file.session() as connection, reading(connection):
            found = [t.schema for t in self._tables(connection)]
            if log.warehouse(connection) != self._owner.warehouse:
                return found
            said = [evidence.present(connection, r.name) for r in found]
        pairs = zip(found, said, strict=True)
        return [r if now is None else replace(r, evidence=str(now)) for r, now in pairs]

    def unsupported(self) -> dict[RelationName, Mapping[str, str]]:
        """Columns that cannot be watched, by relation and name, with the reason."""
        with self._file.session() as connection:
            tables = self._tables(connection)
        return {t.schema.name: t.unsupported for t in tables if t.unsupported}

    def obstacles(self, relations: Sequence[RelationSchema]) -> list[SteadyviewError]:
        """A file, or a folder, that we may not write to; a log of another warehouse."""
        path = self._file.path
        found: list[SteadyviewError] = [
            SourceRefused(
                f'source "{self.name}" cannot be written to: "{place}"',
                detail="its changes are logged in the file itself",
                hint=f"let the user that runs steadyview write to {place}",
            )
            for place in (path, path.parent)
            if not os.access(place, os.W_OK)
        ]
        try:
            with self._file.session() as connection, reading(connection):
                self._require_ours(connection)
        except SteadyviewError as error:
            found.append(error)
        return found

    def prepare(self, relations: Sequence[RelationSchema]) -> list[str]:
        """WAL mode, the log, and the triggers of the relations."""
        done: list[str] = []
        for obstacle in self.obstacles(relations):
            raise obstacle
        with self._file.session() as connection:
            before = _journal_mode(connection)
            if before != "wal":
                self._switch_to_wal(connection)
                done.append("switched the file to WAL mode")
            with writing(connection):
                done += self._set_up_log(connection, before)
                for relation in relations:
                    table = read_table(connection, self.name, relation.name.path[0])
                    done += filter(None, [setup.log_relation(connection, table)])
                setup.drop_older(connection)
        return done

    def remove(self) -> list[str]:
        """Drop triggers and log, and give the file back its journal mode."""
        done: list[str] = []
        with self._file.session() as connection:
            with writing(connection):
                self._require_ours(connection)
                before = setup.drop(connection) if log.exists(connection) else None
            if before is not None:
                done.append("dropped the log and its triggers")
                if before != "wal" and _restore_journal(connection, before):
                    done.append(f'switched the file back to journal mode "{before}"')
        Cuts(self._file.path).remove()
        return done

    def holdings(self) -> list[str]:
        """What stands in the file for us, for people; empty if there is nothing of ours."""
        if not self._file.path.is_file():
            return []
        with self._file.session() as connection, reading(connection):
            if log.warehouse(connection) != self._owner.warehouse:
                return []
            return setup.holdings(connection, self._file.path)

    def position(self, text: str) -> LogPosition:
        """Read back what `str(position)` wrote."""
        return LogPosition.parse(text)

    def start(self) -> LogPosition:
        """The log's present end."""
        with self._file.session() as connection, reading(connection):
            self._require_ours(connection)
            self._require_log(connection)
            return LogPosition(log.identity(connection), log.last_row(connection))

    def time(self) -> None:
        """A file has no clock but this machine's."""

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
        with self._file.session() as connection, reading(connection):
            self._require_ours(connection)
            self._require_log(connection)
            self._require_position(connection, position)
            known = Proof.parse(proof)
            if known is not None:
                known.require(connection, self.name)
            now = Proof.of(connection, position)
        return SqliteMonitor(self._file, relations, position, next_seq, now)

    def snapshot(self) -> SqliteSnapshot:
        """Freeze the present state."""
        return SqliteSnapshot(self._file)

    def examine(self, relations: Sequence[RelationSchema], proof: str) -> Examined:
        """What the file itself says about the relations, against what it said before."""
        self._file.identity()
        with self._file.session() as connection, reading(connection):
            known = Proof.parse(proof)
            if known is not None:
                known.require(connection, self.name)
            self._require_log(connection)
            found = {r: evidence.present(connection, r.name) for r in relations}
        losses = [
            Loss(r.name, column, 0, reason)
            for r, now in found.items()
            for column, reason in _lost(r, now).items()
        ]
        said = {r.name: str(now) for r, now in found.items() if now is not None}
        return Examined(tuple(losses), said)

    def close(self) -> None:
        """Nothing is held open between calls."""

    def _tables(self, connection: sqlite3.Connection) -> list[FoundTable]:
        names = [find_table(connection, self.name, s) for s in self._spellings]
        return [read_table(connection, self.name, n) for n in dict.fromkeys(names)]

    def _switch_to_wal(self, connection: sqlite3.Connection) -> None:
        mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        if mode != "wal":
            raise SourceRefused(
                f'source "{self.name}" cannot be switched to WAL mode (it stays in "{mode}")',
                hint="put the file on a local disk",
            )

    def _set_up_log(self, connection: sqlite3.Connection, journal: str) -> list[str]:
        if not log.exists(connection):
            setup.drop_leftovers(connection)
            log.create(connection, journal, self._owner.warehouse)
            return ["created the log"]
        done = []
        if not log.is_current(connection):
            log.upgrade(connection)
            done.append("brought the log up to date")
        log.count(connection)
        log.claim(connection, self._owner.warehouse)
        return done

    def _require_log(self, connection: sqlite3.Connection) -> None:
        if not log.is_current(connection):
            raise SourceRefused(
                f'source "{self.name}" is not set up', hint="run: steadyview run", source=self.name
            )

    def _require_ours(self, connection: sqlite3.Connection) -> None:
        """A log that nobody has claimed is ours if we have captured from this file before."""
        if not log.exists(connection):
            return
        found, path = log.warehouse(connection), self._file.path
        if found == self._owner.warehouse or (found is None and self._owner.proof):
            return
        whose = f'another warehouse ("{found}")' if found else "a warehouse that is not known"
        raise SourceRefused(
            f'the log in the file of source "{self.name}" belongs to {whose}',
            detail="the changes of a SQLite file are logged for one warehouse at a time",
            hint=f"run in that project: steadyview source remove {self.name}; or, if there is none"
            f' any more: sqlite3 {path} "DROP TABLE {log.META}"',
            source=self.name,
        )

    def _require_position(self, connection: sqlite3.Connection, position: LogPosition) -> None:
        last = log.last_row(connection)
        reason = None
        if log.identity(connection) != position.log:
            reason = "its log was removed and set up anew"
        elif position.row < log.pruned(connection):
            reason = f"its log now starts after row {log.pruned(connection)}"
        elif position.row > last:
            raise diverged(
                self.name, f"row {position.row} of its log was captured, but it ends at row {last}"
            )
        if reason:
            raise ChangesLost(
                f'source "{self.name}" no longer keeps the changes after position {position}',
                detail=reason,
                hint=f"run: steadyview source resnapshot {self.name}",
                source=self.name,
            )


def _lost(relation: RelationSchema, now: evidence.Evidence | None) -> evidence.Losses:
    return evidence.losses(relation.name, evidence.Evidence.parse(relation.evidence), now)


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
