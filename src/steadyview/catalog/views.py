"""Views: what they are, in which state, and what of them is published.

Publishing is one catalog transaction for all views of a batch: readers see all of them move or none
(law 4). Invariant per view: start_cn <= oldest_cn <= cn <= last cn, and base_cn <= cn; cn never
goes back.

A name has one view that readers see, and perhaps a replacement, which is built beside it and takes
its place (`swap`). What is done by name is done to the former; both have an id.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass

from steadyview.catalog.audits import leave_out
from steadyview.catalog.builds import end_readers
from steadyview.catalog.clock import Clock
from steadyview.catalog.database import Database
from steadyview.catalog.files import FileChange, record
from steadyview.catalog.refreshes import propagate
from steadyview.catalog.sources import store_evidence
from steadyview.changes import Loss, RelationName

_STILL = "SOURCE "
"""The code of a stopped view that waits for a source, before the source's name."""
_STANDING = "state <> 'dropped' AND NOT replacement"
_FIELDS = (
    "id, name, sql, level, kind, definition, fingerprint, state, code, error, error_cn,"
    " start_cn, oldest_cn, cn, delta_version, base_cn, base_version, replacement, mendable,"
    " made_as, begun, refusal_code, refusal, paused"
)


@dataclass(frozen=True)
class ViewSpec:
    """What a view is: its SQL text and how it is kept ('incremental' or 'recomputed').

    `definition` is how it is kept, as JSON (empty: as by default), `fingerprint` changes with the
    view's meaning.
    """

    name: str
    sql: str
    level: str
    kind: str
    definition: str
    fingerprint: str


@dataclass(frozen=True)
class ViewRow:
    """A view as recorded. `id` is its own for ever; `cn` is None until something is published.

    `state`: building, active, paused (its file is gone, since `paused`), stopped (`error` at
    `error_cn`), refused (`code`, `error`), dropped. `mendable`: what stopped it are values at the
    source; once they are mended there, a first state made anew may go on by itself.
    `replacement`: it is built beside the view of its name. `made_as`: the name by which its files
    are found. `begun`: when it was added. `refusal`: why its file, as it is now, does not take its
    place; the view goes on as it was.
    """

    id: int
    name: str
    sql: str
    level: str
    kind: str
    definition: str
    fingerprint: str
    state: str
    code: str | None
    error: str | None
    error_cn: int | None
    start_cn: int
    oldest_cn: int
    cn: int | None
    delta_version: int | None
    base_cn: int | None
    base_version: int | None
    replacement: int = 0
    mendable: int = 0
    made_as: str = ""
    begun: int = 0
    refusal_code: str | None = None
    refusal: str | None = None
    paused: int | None = None


@dataclass(frozen=True)
class Published:
    """The state at `cn` of the view with this id.

    Its delta is read up to `delta_version`, its base at `base_version`. `propagated`: up to which
    cn its delta leads, where that is further.
    """

    view: int
    cn: int
    delta_version: int
    base_cn: int
    base_version: int
    propagated: int | None = None


@dataclass(frozen=True)
class Base:
    """The view's whole rows at `cn`, in version `version` of its base table."""

    cn: int
    version: int


class Views:
    """The views part of the catalog."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def add(self, spec: ViewSpec, start_cn: int, *, beside: bool = False) -> ViewRow:
        """A new view in state building; ValueError if one of that name is there.

        `beside`: as the replacement of the view of its name.
        """
        sql = (
            "INSERT INTO views (name, sql, level, kind, definition, fingerprint, state, start_cn,"
            " oldest_cn, replacement, made_as, begun)"
            " VALUES (?, ?, ?, ?, ?, ?, 'building', ?, ?, ?, ?, ?)"
        )
        values = (*astuple(spec), start_cn, start_cn, beside, spec.name, self._clock.now_us())
        try:
            with self._database.write() as connection:
                view_id = connection.execute(sql, values).lastrowid
        except sqlite3.IntegrityError as error:
            raise ValueError(f'view "{spec.name}" cannot be added: {error}') from error
        assert view_id is not None
        return self.row(view_id)

    def all(self) -> list[ViewRow]:
        """Every view that is not dropped, by name."""
        sql = f"SELECT {_FIELDS} FROM views WHERE {_STANDING} ORDER BY name"
        return [ViewRow(*row) for row in self._database.read(sql)]

    def replacements(self) -> list[ViewRow]:
        """What is being built to take a view's place, by name."""
        sql = f"SELECT {_FIELDS} FROM views WHERE state = 'building' AND replacement ORDER BY name"
        return [ViewRow(*row) for row in self._database.read(sql)]

    def dropped(self) -> list[ViewRow]:
        """Views whose storage may be removed."""
        sql = f"SELECT {_FIELDS} FROM views WHERE state = 'dropped' ORDER BY id"
        return [ViewRow(*row) for row in self._database.read(sql)]

    def find(self, name: str) -> ViewRow | None:
        """The view of that name, None if there is none (or it is dropped)."""
        sql = f"SELECT {_FIELDS} FROM views WHERE name = ? AND {_STANDING}"
        found = self._database.read(sql, (name,))
        return ViewRow(*found[0]) if found else None

    def get(self, name: str) -> ViewRow:
        """The view of that name; KeyError if there is none (or it is dropped)."""
        found = self.find(name)
        if found is None:
            raise KeyError(name)
        return found

    def row(self, view_id: int) -> ViewRow:
        """The view with that id, dropped or not; KeyError if it is forgotten."""
        sql = f"SELECT {_FIELDS} FROM views WHERE id = ?"
        found = self._database.read(sql, (view_id,))
        if not found:
            raise KeyError(view_id)
        return ViewRow(*found[0])

    def replace(self, name: str) -> None:
        """Begin to build the view anew beside what it shows; nothing if that has begun."""
        row = self.get(name)
        sql = (
            "INSERT INTO views (name, sql, level, kind, definition, fingerprint, state, start_cn,"
            " oldest_cn, replacement, made_as, begun) SELECT name, sql, level, kind, definition,"
            " fingerprint, 'building', start_cn, oldest_cn, 1, name, ? FROM views"
            " WHERE id = ? AND NOT EXISTS"
            " (SELECT 1 FROM views WHERE name = ? AND replacement AND state <> 'dropped')"
        )
        with self._database.write() as connection:
            connection.execute(sql, (self._clock.now_us(), row.id, name))

    def give_up(self, view_ids: Iterable[int]) -> None:
        """What is built beside will not be finished: its storage may be removed."""
        with self._database.write() as connection:
            _give_up(connection, view_ids)

    def swap(self, view_ids: Sequence[int]) -> None:
        """What was built beside takes the place of the views of its names, all at once."""
        marks = ", ".join("?" * len(view_ids))
        beside = f"id IN ({marks}) AND replacement AND state = 'building' AND cn IS NOT NULL"
        with self._database.write() as connection:
            connection.execute(
                f"UPDATE views SET state = 'dropped' WHERE {_STANDING} AND name IN"
                f" (SELECT name FROM views WHERE {beside})",
                tuple(view_ids),
            )
            sql = f"UPDATE views SET replacement = 0, state = 'active' WHERE {beside}"
            if connection.execute(sql, tuple(view_ids)).rowcount != len(view_ids):
                raise KeyError(tuple(view_ids))

    def started(self, view_id: int, start_cn: int) -> None:
        """Set where a view in building starts: known only once its first state was read."""
        with self._database.write() as connection:
            sql = "UPDATE views SET start_cn = ?, oldest_cn = ? WHERE id = ?"
            connection.execute(sql, (start_cn, start_cn, view_id))

    def kept_by(self, view_id: int, text: str, level: str, definition: str) -> None:
        """The view is written or kept in another way from now on; what it means stays."""
        with self._database.write() as connection:
            sql = "UPDATE views SET sql = ?, level = ?, definition = ? WHERE id = ?"
            connection.execute(sql, (text, level, definition, view_id))

    def not_taken(self, name: str, code: str | None, text: str | None) -> None:
        """Why the view's file, as it is now, does not take its place; None: nothing is wrong."""
        row = self.get(name)
        if (row.refusal_code, row.refusal) != (code, text):
            self._change(name, "refusal_code = ?, refusal = ?", code, text)

    def pause(self, name: str) -> None:
        """The view's file is gone: it stays as it is. One that is stopped stays stopped as well."""
        state = "CASE state WHEN 'stopped' THEN state ELSE 'paused' END"
        assignments = f"state = {state}, paused = ?, refusal_code = NULL, refusal = NULL"
        self._change(name, assignments, self._clock.now_us())

    def resume(self, name: str) -> None:
        """A paused view is kept again."""
        state = "CASE state WHEN 'paused' THEN 'active' ELSE state END"
        self._change(name, f"state = {state}, paused = NULL")

    def rename(
        self,
        old: str,
        new: str,
        readers: Mapping[int, tuple[str, str]],
        files: Iterable[FileChange] = (),
    ) -> None:
        """Call a view otherwise, with what is built beside it; nothing if there is no such view.

        `readers`: SQL and definition of those that read it, by id. Its data stay where they are.
        `files`: what becomes of the project's files.
        """
        with self._database.write() as connection:
            sql = "UPDATE views SET name = ? WHERE name = ? AND state <> 'dropped'"
            connection.execute(sql, (new, old))
            connection.execute("UPDATE subscriptions SET of = ? WHERE of = ?", (new, old))
            sql = "UPDATE views SET sql = ?, definition = ? WHERE id = ?"
            connection.executemany(sql, [(*both, view) for view, both in readers.items()])
            record(connection, files)

    def stop(self, name: str, error: str, cn: int | None, *, mendable: bool = False) -> None:
        """The view met `error` at `cn` and stands just before it."""
        with self._database.write() as connection:
            _stop(connection, name, error, cn, mendable=mendable)

    def lose(
        self,
        stopped: Mapping[str, str],
        evidence: Mapping[RelationName, str],
        lost: Sequence[Loss] = (),
        given_up: Iterable[int] = (),
    ) -> None:
        """Stop views, each for its reason, and remember what the sources say now, all at once.

        So a loss is told to every view that was there, and to no view built from later states. The
        builds that read a lost relation go with it, and what its last audit says of it.
        `given_up`: what was built beside from earlier states.
        """
        with self._database.write() as connection:
            for name, reason in stopped.items():
                ((cn,),) = connection.execute(
                    f"SELECT cn FROM views WHERE name = ? AND {_STANDING}", (name,)
                ).fetchall()
                _stop(connection, name, reason, None if cn is None else cn + 1, mendable=False)
            _give_up(connection, given_up)
            for relation, text in evidence.items():
                store_evidence(connection, relation, text)
            end_readers(connection, [x.relation for x in lost])
            leave_out(connection, lost)

    def stand_still(self, source: str, names: Sequence[str], error: str) -> None:
        """Stop the views of a source that is not captured any more, until it is again."""
        with self._database.write() as connection:
            for name in names:
                row = f"name = ? AND state = 'active' AND {_STANDING}"
                connection.execute(
                    "UPDATE views SET state = 'stopped', error = ?, error_cn = cn + 1, code = ?,"
                    f" mendable = 0 WHERE {row}",
                    (error, f"{_STILL}{source}", name),
                )

    def go_on(self, source: str, oldest: int) -> None:
        """The source is captured again where it was: so are its views, if the log reaches back.

        Otherwise they are built anew.
        """
        late = f"state = 'stopped' AND code = ? AND cn < ? AND {_STANDING}"
        sql = f"SELECT name FROM views WHERE {late}"
        for (name,) in self._database.read(sql, (f"{_STILL}{source}", oldest)):
            self.replace(name)
        with self._database.write() as connection:
            connection.execute(
                "UPDATE views SET state = 'active', error = NULL, error_cn = NULL, code = NULL"
                f" WHERE state = 'stopped' AND code = ? AND cn >= ? AND {_STANDING}",
                (f"{_STILL}{source}", oldest),
            )

    def still(self) -> set[str]:
        """The sources that views stand still for."""
        sql = f"SELECT DISTINCT code FROM views WHERE state = 'stopped' AND {_STANDING}"
        found = (code for (code,) in self._database.read(sql) if code is not None)
        return {code.removeprefix(_STILL) for code in found if code.startswith(_STILL)}

    def tell(self, name: str, error: str | None) -> None:
        """What keeps the view from going on for now, though it is not stopped; None: nothing."""
        self._change(name, "error = CASE state WHEN 'stopped' THEN error ELSE ? END", error)

    def build_again(self, name: str) -> None:
        """A stopped view without any state goes back to building."""
        cleared = "error = NULL, error_cn = NULL, code = NULL, mendable = 0"
        self._change(name, f"state = 'building', {cleared}")

    def refuse(self, name: str, code: str, error: str) -> None:
        """The view's SQL cannot be maintained."""
        self._change(name, "state = 'refused', code = ?, error = ?", code, error)

    def drop(self, name: str) -> None:
        """Free the name; the row stays until `remove`, so that storage can be cleaned up.

        What is built beside goes as well.
        """
        with self._database.write() as connection:
            sql = "UPDATE views SET state = 'dropped' WHERE name = ? AND state <> 'dropped'"
            if not connection.execute(sql, (name,)).rowcount:
                raise KeyError(name)

    def drop_all(self, names: Sequence[str], files: Iterable[FileChange]) -> None:
        """Free the names that are there, all at once; `files`: what becomes of their files."""
        with self._database.write() as connection:
            sql = "UPDATE views SET state = 'dropped' WHERE name = ? AND state <> 'dropped'"
            connection.executemany(sql, [(name,) for name in names])
            record(connection, files)

    def remove(self, view_id: int) -> None:
        """Forget a dropped view for good, once its storage is gone."""
        with self._database.write() as connection:
            sql = "SELECT state FROM views WHERE id = ?"
            if connection.execute(sql, (view_id,)).fetchone() == ("dropped",):
                connection.execute("DELETE FROM bases WHERE view = ?", (view_id,))
                connection.execute("DELETE FROM gaps WHERE view = ?", (view_id,))
                connection.execute("DELETE FROM refreshes WHERE view = ?", (view_id,))
                connection.execute("DELETE FROM streams WHERE view = ?", (view_id,))
                connection.execute("DELETE FROM views WHERE id = ?", (view_id,))

    def publish(self, updates: Sequence[Published]) -> None:
        """Make the new states current, all at once. Repeating it changes nothing.

        Refuses (ValueError) a cn that is not admitted, goes back, or lies before its base.
        """
        with self._database.write() as connection:
            ((last,),) = connection.execute("SELECT last_cn FROM warehouse").fetchall()
            for update in updates:
                _publish(connection, update, last)
            reached = {u.view: u.propagated for u in updates if u.propagated is not None}
            propagate(connection, reached)

    def bases(self, view_id: int) -> list[Base]:
        """The base versions that can be read, oldest first."""
        sql = "SELECT base_cn, version FROM bases WHERE view = ? AND valid = 1 ORDER BY base_cn"
        return [Base(*row) for row in self._database.read(sql, (view_id,))]

    def forget_before(self, view_id: int, cn: int) -> None:
        """States before cn can no longer be read; never goes back. The newest base always stays.

        So does a state that a subscription is still to be given.
        """
        due = "SELECT min(position) FROM subscriptions WHERE view = views.id AND state <> 0"
        with self._database.write() as connection:
            connection.execute(
                "UPDATE views SET oldest_cn ="
                f" max(oldest_cn, min(?, coalesce(cn, start_cn), coalesce(({due}), ?)))"
                " WHERE id = ?",
                (cn, cn, view_id),
            )

    def invalidate_bases(self, view_id: int, before_version: int) -> None:
        """Base versions older than this were vacuumed; the current one always stays."""
        current = "(SELECT coalesce(base_cn, -1) FROM views WHERE id = ?)"
        with self._database.write() as connection:
            connection.execute(
                "UPDATE bases SET valid = 0 WHERE view = ? AND version < ?"
                f" AND base_cn <> {current}",
                (view_id, before_version, view_id),
            )

    def _change(self, name: str, assignments: str, *values: object) -> None:
        """`assignments` is always a text of this module."""
        sql = f"UPDATE views SET {assignments} WHERE name = ? AND {_STANDING}"
        with self._database.write() as connection:
            if not connection.execute(sql, (*values, name)).rowcount:
                raise KeyError(name)


def _stop(
    connection: sqlite3.Connection, name: str, error: str, cn: int | None, *, mendable: bool
) -> None:
    sql = (
        "UPDATE views SET state = 'stopped', code = NULL, error = ?, error_cn = ?, mendable = ?"
        f" WHERE name = ? AND {_STANDING}"
    )
    if not connection.execute(sql, (error, cn, mendable, name)).rowcount:
        raise KeyError(name)


def _give_up(connection: sqlite3.Connection, view_ids: Iterable[int]) -> None:
    sql = "UPDATE views SET state = 'dropped' WHERE id = ? AND replacement"
    connection.executemany(sql, [(view_id,) for view_id in view_ids])


def _publish(connection: sqlite3.Connection, update: Published, last_cn: int) -> None:
    sql = "SELECT name, coalesce(cn, start_cn) FROM views WHERE id = ? AND state <> 'dropped'"
    found = connection.execute(sql, (update.view,)).fetchone()
    if found is None:
        raise KeyError(update.view)
    name, cn = found
    if not cn <= update.cn <= last_cn or update.base_cn > update.cn:
        raise ValueError(f'view "{name}" cannot go from cn {cn} to {update} (last {last_cn})')
    _store(connection, update)


def _store(connection: sqlite3.Connection, update: Published) -> None:
    first = "state = 'building' AND NOT replacement"
    connection.execute(
        "UPDATE views SET cn = ?, delta_version = ?, base_cn = ?, base_version = ?,"
        f" state = CASE WHEN {first} THEN 'active' ELSE state END WHERE id = ?",
        (update.cn, update.delta_version, update.base_cn, update.base_version, update.view),
    )
    connection.execute(
        "INSERT INTO bases (view, base_cn, version) VALUES (?, ?, ?)"
        " ON CONFLICT DO UPDATE SET version = excluded.version, valid = 1",
        (update.view, update.base_cn, update.base_version),
    )
