"""Subscriptions: readers of a view's changes, and how far each of them is.

A position is (incarnation, cn): the id of the view's row, and the last cn whose changes have been
acknowledged. A view that was built anew has another id, so no reader goes on over it by mistake:
it begins again, with an `epoch` more.

    position <= offered        what lies between was handed out, perhaps to nobody
    state                      DUE or OFFERED: the state at `position` comes before any change

Readers move their positions by themselves, whichever process keeps the views: each move is one
transaction here, and one of an older epoch moves nothing. What a position needs is kept for it:
`views.forget_before` and `gaps.compress` read this table in their own transactions, so that nothing
is forgotten or compressed at which a subscription was just put; and none is put into the inside of
a compressed range.
"""

from __future__ import annotations

import sqlite3
from dataclasses import astuple, dataclass, replace
from typing import Any

from steadyview.catalog.clock import Clock
from steadyview.catalog.database import Database

_FIELDS = "name, of, view, epoch, position, offered, state, changes_only, manual, moved"
DONE, DUE, OFFERED = 0, 1, 2
"""Of the state that a subscription begins with: received; not handed out yet; handed out."""


@dataclass(frozen=True)
class Subscription:
    """A reader of the changes of the view that is called `of` now.

    `changes_only`: it is given no rows of states, only changes. `manual`: its position is moved by
    whoever has received the changes, not by handing them out. `moved`: when it moved last.
    """

    name: str
    of: str
    view: int
    epoch: int
    position: int
    offered: int
    state: int
    changes_only: bool
    manual: bool
    moved: int


class Subscriptions:
    """All subscriptions of a warehouse."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def all(self) -> list[Subscription]:
        """By name."""
        sql = f"SELECT {_FIELDS} FROM subscriptions ORDER BY name"
        return [_subscription(row) for row in self._database.read(sql)]

    def find(self, name: str) -> Subscription | None:
        """The subscription of that name."""
        sql = f"SELECT {_FIELDS} FROM subscriptions WHERE name = ?"
        found = self._database.read(sql, (name,))
        return _subscription(found[0]) if found else None

    def add(
        self, name: str, of: str, view: int, position: int, *, changes_only: bool, manual: bool
    ) -> Subscription | None:
        """A new one, from `position` on; None if the view has forgotten that meanwhile.

        ValueError if there is one of that name.
        """
        now, state = self._clock.now_us(), DONE if changes_only else DUE
        made = Subscription(
            name, of, view, 0, position, position, state, changes_only, manual, now
        )
        try:
            with self._database.write() as connection:
                if not _kept(connection, view, position):
                    return None
                marks = ", ".join("?" * len(astuple(made)))
                connection.execute(
                    f"INSERT INTO subscriptions ({_FIELDS}) VALUES ({marks})", astuple(made)
                )
        except sqlite3.IntegrityError as error:
            raise ValueError(f'there is a subscription "{name}" already') from error
        return made

    def begin_again(self, name: str, view: int, position: int) -> Subscription | None:
        """Have it begin anew at a state of the view with this id; None if that is forgotten."""
        sql = (
            "UPDATE subscriptions SET view = ?, position = ?, offered = ?, state = ?,"
            " epoch = epoch + 1, moved = ? WHERE name = ?"
        )
        values = (view, position, position, DUE, self._clock.now_us(), name)
        with self._database.write() as connection:
            if not _kept(connection, view, position):
                return None
            if not connection.execute(sql, values).rowcount:
                raise KeyError(name)
        return self.find(name)

    def offer(self, known: Subscription, upto: int) -> bool:
        """What leads to a cn is about to be handed out; False: it is not what it was any more.

        At its position that is the state with which it begins. False also where the cn lies inside
        a range that was compressed meanwhile: nothing may end there any more.
        """
        sql = (
            f"UPDATE subscriptions SET offered = max(offered, ?), state = iif(state = {DUE},"
            f" {OFFERED}, state) WHERE name = ? AND epoch = ? AND view = ?"
        )
        with self._database.write() as connection:
            if compressed(connection, known.view, upto):
                return False
            values = (upto, known.name, known.epoch, known.view)
            return connection.execute(sql, values).rowcount == 1

    def acknowledge(self, known: Subscription, upto: int) -> bool:
        """All up to a cn has been received; False: it is not what it was any more.

        A position never goes back; what was not handed out cannot have been received.
        """
        sql = (
            f"UPDATE subscriptions SET position = ?, state = {DONE}, moved = ?"
            " WHERE name = ? AND epoch = ? AND view = ? AND position <= ? AND offered >= ?"
            f" AND state <> {DUE}"
        )
        now = self._clock.now_us()
        with self._database.write() as connection:
            values = (upto, now, known.name, known.epoch, known.view, upto, upto)
            return connection.execute(sql, values).rowcount == 1

    def pass_by(self, known: Subscription, upto: int) -> bool:
        """No commit up to a cn has changed the view: nothing is to be received.

        False: something that was handed out is not acknowledged, or it is not what it was, or the
        cn lies inside a range that was compressed meanwhile.
        """
        sql = (
            "UPDATE subscriptions SET position = ?, offered = ? WHERE name = ? AND epoch = ?"
            f" AND view = ? AND position = offered AND position <= ? AND state = {DONE}"
        )
        with self._database.write() as connection:
            if compressed(connection, known.view, upto):
                return False
            values = (upto, upto, known.name, known.epoch, known.view, upto)
            return connection.execute(sql, values).rowcount == 1

    def drop(self, name: str) -> bool:
        """Forget it; nothing is kept for it any more. False: there was none."""
        with self._database.write() as connection:
            sql = "DELETE FROM subscriptions WHERE name = ?"
            return connection.execute(sql, (name,)).rowcount == 1

    def held(self, view: int | None = None) -> list[int]:
        """From where on changes are kept for readers: of one view, or of all."""
        of_view = "" if view is None else " AND view = ?"
        values = () if view is None else (view,)
        sql = (
            "SELECT position FROM subscriptions JOIN views ON views.id = subscriptions.view"
            f" WHERE views.state <> 'dropped'{of_view}"
        )
        return [position for (position,) in self._database.read(sql, values)]


def _kept(connection: sqlite3.Connection, view: int, cn: int) -> bool:
    """Whether the view's state at the cn is kept, as of this transaction."""
    sql = "SELECT 1 FROM views WHERE id = ? AND state <> 'dropped' AND oldest_cn <= ?"
    known = connection.execute(sql, (view, cn)).fetchone() is not None
    return known and not compressed(connection, view, cn)


def compressed(connection: sqlite3.Connection, view: int, cn: int) -> bool:
    """Whether the cn lies inside a range that was compressed, as of this transaction."""
    sql = "SELECT 1 FROM gaps WHERE view = ? AND low < ? AND high > ? AND commits IS NOT NULL"
    return connection.execute(sql, (view, cn, cn)).fetchone() is not None


def _subscription(row: tuple[Any, ...]) -> Subscription:
    known = Subscription(*row)
    return replace(known, changes_only=bool(known.changes_only), manual=bool(known.manual))
