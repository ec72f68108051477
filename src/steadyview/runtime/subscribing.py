"""A reader of a view's changes: what it is given next, and what it has acknowledged.

    state at p,  (p, m],  (m, n],  ...        each whole, none left out

Before something is handed out, the subscription's `offered` says so; after it was acknowledged, its
`position` does. Whatever happens in between, it is handed out again: at least once, and exactly
once for a receiver that leaves out the cns up to the last one that it has kept. A view that was
built anew, or replaced by another of its name, has a state of its own to begin with.

Reading needs catalog and files alone, whether the views are kept meanwhile or not. One process at
a time reads a subscription; a lock beside the catalog, `subscriptions/<name>`, sees to that.
"""

from __future__ import annotations

import fcntl
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from steadyview.catalog import Catalog, Subscription, ViewRow, from_us
from steadyview.catalog.subscriptions import DONE
from steadyview.crash_points import crash_point
from steadyview.delta.durability import make_folder
from steadyview.errors import (
    ConfigError,
    DefiniteError,
    OutsideRetention,
    StorageDamaged,
    ViewStopped,
)
from steadyview.modes import open_file
from steadyview.nearest import nearest_or_all
from steadyview.plans.plan import HIDDEN
from steadyview.runtime.file_reading import state_parts
from steadyview.runtime.kept import reach_of, shape_of
from steadyview.runtime.state_kept import check_no_gap, gap_at
from steadyview.warehouse.change_rows import ChangeRows, as_changes
from steadyview.warehouse.states import check_readable
from steadyview.warehouse.view_store import ViewStore

PIECE = 20_000
"""Changed rows that are handed out together, and acknowledged together, at most about so many."""
LOOK = 0.2
"""Seconds between two looks at the catalog of a reader that waits for changes."""
START, NOW = "start", "now"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


@dataclass(frozen=True)
class Delivery:
    """What a reader is given: a state, or the changes of some commits, all of each.

    `cn`: where it is with them. `state`: these are all rows of the view at `cn`, whatever it has
    had before if `reset`: the view was built anew, and it begins for another time, its `epoch`.
    `ranges`: commits whose changes are those of
    all after another cn as well, by their cns. `commits`: how many there are.
    """

    cn: int
    time: datetime
    state: bool = False
    reset: bool = False
    epoch: int = 0
    commits: int = 1
    ranges: Mapping[int, int] = field(default_factory=dict)
    read: Callable[[], Iterator[pa.Table]] = field(default=lambda: iter(()), repr=False)

    def tables(self) -> Iterator[pa.Table]:
        """The rows: the view's columns, then `_count`, `_cn`, `_time`, in the order of `_cn`."""
        return self.read()


@dataclass(frozen=True)
class Start:
    """Where a subscription begins: a cn, START (the oldest state that is kept) or NOW.

    `changes_only`: without the rows of the state there. `manual`: its position is moved by
    `acknowledge` alone, from whichever process.
    """

    at: int | str = NOW
    changes_only: bool = False
    manual: bool = False


@dataclass(frozen=True)
class SubscriptionStatus:
    """A subscription for people: up to which `cn` it has acknowledged, and how far behind that is.

    `behind`: commits of all sources that came since, the first of them `behind_seconds` ago.
    """

    name: str
    view: str
    cn: int
    offered: int
    behind: int
    behind_seconds: float | None
    ack: str
    state: str

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


class Subscriber:
    """The one process that reads a subscription. Close it, or use it as a context manager."""

    def __init__(self, root: Path, catalog: Catalog, known: Subscription) -> None:
        """ConfigError if another process reads it."""
        self._root = root
        self._catalog = catalog
        self._lock: int | None = _locked(root, known.name)
        self._known = known
        self._handed: int | None = None
        """The cn that was handed out last; None: nothing yet, since it began or was reset."""
        self._cuts: list[int] = []

    def __enter__(self) -> Subscriber:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let others read it. Safe to call twice."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @property
    def name(self) -> str:
        """The subscription's."""
        return self._known.name

    @property
    def manual(self) -> bool:
        """Whether its position is moved by those who received the changes."""
        return self._known.manual

    @property
    def columns(self) -> list[str]:
        """The columns that it is given, as the view has them now."""
        row = self._catalog.views.row(self._known.view)
        return [name for name, _ in shape_of(row).visible]

    def next(self, transactions: int | None = None) -> Delivery | None:
        """What comes after what was handed out; None: nothing is left for now.

        `transactions`: so many commits at most.
        """
        row = self._current()
        if row is None:
            return None
        try:
            return self._next(row, transactions)
        except StorageDamaged as damage:
            # imported late: reading needs no planning
            from steadyview.runtime.reconciling import files_damaged

            raise files_damaged(row.name, damage.message) from damage

    def _next(self, row: ViewRow, transactions: int | None) -> Delivery | None:
        if self._known.state != DONE and self._handed is None:
            return self._state()
        after = self._known.position if self._handed is None else self._handed
        upmost = reach(self._catalog, row)
        changes = ChangeRows(self._store(row), self._catalog, row.id, upmost)
        upto = self._offered(changes, after, transactions)
        if upto is None:
            if upmost > after and self._catalog.subscriptions.pass_by(self._known, upmost):
                self._handed = upmost
            return None
        crash_point("changes-offered")
        self._handed = upto
        rows = changes.rows(after, upto)
        cns = rows["_cn"].unique().to_pylist()
        gaps = ((cn, gap_at(self._catalog, row, cn - 1, upmost)) for cn in cns)
        ranges = {cn: gap.low for cn, gap in gaps if gap is not None}
        time = from_us(self._catalog.commits.time_of(upto))
        return Delivery(
            upto,
            time,
            epoch=self._known.epoch,
            commits=len(cns),
            ranges=ranges,
            read=lambda: iter([rows]),
        )

    def _offered(self, changes: ChangeRows, after: int, transactions: int | None) -> int | None:
        """Up to where changes are handed out next, which is written down; None: there are none."""
        while True:
            if not self._cuts or transactions is not None:
                self._cuts = changes.ends(after, PIECE, transactions)
            if not self._cuts:
                return None
            upto = self._cuts.pop(0)
            if self._catalog.subscriptions.offer(self._known, upto):
                return upto
            # what would end there was compressed meanwhile, or somebody has moved it
            inside = gap_at(self._catalog, self._catalog.views.row(self._known.view), upto)
            self._check(inside is not None and inside.compressed)
            self._cuts = []

    def acknowledge(self) -> None:
        """All that was handed out has been received and kept."""
        if self._handed is not None:
            accepted = self._catalog.subscriptions.acknowledge(self._known, self._handed)
            self._check(accepted)
            crash_point("changes-acknowledged")

    def wait(self, stop: threading.Event) -> None:
        """Until there may be something new, or `stop` is set."""
        before = self._seen()
        while not stop.wait(LOOK) and self._seen() == before:
            pass

    def _seen(self) -> tuple[int, int | None, int]:
        row = _row_of(self._catalog, self._known)
        deferred = self._catalog.refreshes.all().get(row.id)
        return row.id, row.cn, -1 if deferred is None else deferred.propagated

    def _current(self) -> ViewRow | None:
        """The row of the view that is read; a reader of an older one begins again with it.

        None: the view is another by now, and has no state yet.
        """
        known = self._catalog.subscriptions.find(self.name)
        self._check(known is not None and known.epoch == self._known.epoch)
        assert known is not None
        self._known = known
        while True:
            row = _row_of(self._catalog, known)
            if row.id == known.view:
                return row
            if row.cn is None:
                return None
            again = self._catalog.subscriptions.begin_again(self.name, row.id, row.cn)
            if again is not None:
                self._known, self._handed, self._cuts = again, None, []
                return row

    def _state(self) -> Delivery:
        known = self._known
        time = self._catalog.commits.time_of(known.position)
        self._check(self._catalog.subscriptions.offer(known, known.position))
        crash_point("state-offered")
        self._handed = known.position
        read = partial(self._rows_of_state, known, time)
        rows = (lambda: iter(())) if known.changes_only else read
        again = known.epoch > 0
        return Delivery(known.position, from_us(time), True, again, known.epoch, read=rows)

    def _rows_of_state(self, known: Subscription, time: int) -> Iterator[pa.Table]:
        for part in state_parts(self._root, self._catalog, known.view, known.position):
            yield from as_changes(part.rows(), known.position, time)

    def _store(self, row: ViewRow) -> ViewStore:
        return ViewStore(self._root, row, shape_of(row))

    def _check(self, still: bool) -> None:
        if not still:
            raise DefiniteError(
                f'subscription "{self.name}" was dropped or reset meanwhile',
                hint="steadyview subscription list shows what there is",
            )


def subscribed(
    root: Path, catalog: Catalog, view: str, name: str, start: Start | None = None
) -> Subscriber:
    """A reader of the view's changes; a new one begins at `start`.

    ConfigError where one of that name begins elsewhere, or reads another view.
    """
    check_name(name)
    row = named_view(catalog, view)
    known = catalog.subscriptions.find(name)
    if known is None:
        known = _begun(catalog, row, name, start or Start())
    else:
        _check_same(known, row, start)
    return Subscriber(root, catalog, known)


def all_subscriptions(catalog: Catalog, now: int) -> list[SubscriptionStatus]:
    """Every subscription, by name."""
    rows = {row.id: row for row in catalog.views.all()}
    return [_status(catalog, one, rows.get(one.view), now) for one in catalog.subscriptions.all()]


def _status(
    catalog: Catalog, one: Subscription, row: ViewRow | None, now: int
) -> SubscriptionStatus:
    upto = one.position if row is None or row.cn is None else reach(catalog, row)
    since = None
    if upto > one.position:
        since = max(0.0, (now - catalog.commits.time_of(one.position + 1)) / 1_000_000)
    if row is None:
        there = catalog.views.find(one.of)
        state = "its view is gone" if there is None else "its view was built anew"
    else:
        state = "reading" if one.state == DONE else "begins"
    ack = "manual" if one.manual else "auto"
    behind = upto - one.position
    return SubscriptionStatus(
        one.name, one.of, one.position, one.offered, behind, since, ack, state
    )


def drop(root: Path, catalog: Catalog, name: str) -> None:
    """Forget a subscription."""
    if catalog.subscriptions.drop(found(catalog, name).name):
        (root / "subscriptions" / name).unlink(missing_ok=True)


def reset(catalog: Catalog, name: str, at: int | str) -> Subscription:
    """Have a subscription begin again at a state of its view as it is now."""
    known = found(catalog, name)
    row = _row_of(catalog, known)
    while True:
        position = begins_at(catalog, row, at)
        again = catalog.subscriptions.begin_again(name, row.id, position)
        if again is not None:
            return again
        row = _row_of(catalog, known)


def acknowledge(catalog: Catalog, name: str, cn: int, epoch: int | None = None) -> bool:
    """All up to `cn` has been received by whom it was handed out to; whether that was new.

    `epoch`: of which of the reader's beginnings, if not of the last one.
    """
    known = found(catalog, name)
    if cn > known.offered:
        raise ConfigError(
            f'subscription "{name}" cannot be acknowledged up to cn {cn}',
            detail=f"only changes up to cn {known.offered} were handed out",
        )
    if epoch not in (None, known.epoch) or cn < known.position:
        return False
    return catalog.subscriptions.acknowledge(known, cn)


def found(catalog: Catalog, name: str) -> Subscription:
    """The subscription of that name, or an error that names those that there are."""
    known = catalog.subscriptions.find(name)
    if known is None:
        names = [s.name for s in catalog.subscriptions.all()]
        hint = nearest_or_all(name, names) or f"begin one: steadyview subscribe VIEW --as {name}"
        raise ConfigError(f'there is no subscription "{name}"', hint=hint)
    return known


def check_name(name: str) -> None:
    """ConfigError for what cannot be a subscription's name."""
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f'"{name}" cannot name a subscription',
            hint="use up to 100 letters, digits, points, dashes and underlines",
        )


def _begun(catalog: Catalog, row: ViewRow, name: str, start: Start) -> Subscription:
    while True:
        position = begins_at(catalog, row, start.at)
        made = catalog.subscriptions.add(
            name,
            row.name,
            row.id,
            position,
            changes_only=start.changes_only,
            manual=start.manual,
        )
        if made is not None:
            return made
        row = named_view(catalog, row.name)


def _check_same(known: Subscription, row: ViewRow, start: Start | None) -> None:
    if known.of.lower() != row.name.lower():
        raise ConfigError(
            f'subscription "{known.name}" reads view "{known.of}"',
            hint=f"choose another name, or run: steadyview subscription drop {known.name}",
        )
    if start is not None:
        raise ConfigError(
            f'subscription "{known.name}" has begun already; it is at cn {known.position}',
            hint="leave out where and how it begins, or run: "
            f"steadyview subscription reset {known.name} --from {start.at}",
        )


def begins_at(catalog: Catalog, row: ViewRow, at: int | str) -> int:
    """The cn of the state that `at` means, which is kept."""
    assert row.cn is not None
    if at == NOW:
        return row.cn
    if at == START:
        gap = gap_at(catalog, row, row.oldest_cn)
        return row.oldest_cn if gap is None else gap.high
    if not isinstance(at, int):
        raise ConfigError(f'"{at}" is no beginning', hint="say start, now or a commit number")
    check_readable(row, at)
    check_no_gap(catalog, row, at)
    return at


def reach(catalog: Catalog, row: ViewRow) -> int:
    """How far the changes of the view are at hand, shown or not."""
    reached = reach_of(row, catalog.refreshes.all().get(row.id))
    assert reached is not None
    return reached


def named_view(catalog: Catalog, view: str) -> ViewRow:
    """The view of that name, with a state."""
    rows = [r for r in catalog.views.all() if not r.name.startswith(HIDDEN)]
    row = next((r for r in rows if r.name.lower() == view.lower()), None)
    if row is None:
        raise ConfigError(
            f'there is no view "{view}" in the warehouse',
            hint=nearest_or_all(view, [r.name for r in rows])
            or "steadyview run builds the project's views",
        )
    if row.cn is None:
        hint = "steadyview run builds its first state"
        raise OutsideRetention(f'view "{row.name}" has no state yet', detail=row.error, hint=hint)
    return row


def _row_of(catalog: Catalog, known: Subscription) -> ViewRow:
    """The view that a subscription reads, as it is called now."""
    row = catalog.views.find(known.of)
    if row is None:
        raise ViewStopped(
            f'subscription "{known.name}" reads view "{known.of}", which is no more',
            hint=f"run: steadyview subscription drop {known.name}",
        )
    return row


def _locked(root: Path, name: str) -> int:
    """A lock that ends with the process, however that ends."""
    folder = root / "subscriptions"
    make_folder(folder)
    descriptor = open_file(folder / name)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise ConfigError(
            f'subscription "{name}" is being read by another process',
            hint="end that one first, or read under another name",
        ) from None
    return descriptor

