"""A database in memory, as far as deferred views see it: locks, clocks, deltas, a commit table.

Each request is done at one moment, or it waits and is asked again later. Accounts are locked
exclusively until the end of the transaction, so that the order of commits is a serial order; a
transaction that is rolled back leaves nothing. `now` is the one true time, by which is judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from steadyview.checking.deferred import ApplyStep, DeferredTransaction
from steadyview.maintenance.ipda.records import DeltaRecord, Groups, net_effect, rolled
from steadyview.maintenance.ipda.requests import (
    ApplyRecords,
    EndTransaction,
    InsertCommitRecord,
    InsertRecord,
    LockForReading,
    LockForWriting,
    PurgeCommitRecords,
    ReadClock,
    ReadCommitRecords,
    ReadLaterRecords,
    ReadRecords,
    RetrieveRecords,
    Unlock,
)
from steadyview.simulation.deferred.worlds import (
    DEPOSITS,
    NAMES,
    OWNERS,
    WITHDRAWALS,
    AccountStatement,
)

GroupAmounts: TypeAlias = tuple[str, Any, tuple[int, ...]]
"""A view, one of its groups, and what comes to its amounts."""
WAITS: Final = object()
"""The answer to a request that must be asked again."""


@dataclass(frozen=True)
class LockAccount:
    """Obtain the lock of a statement's account."""

    account: str


@dataclass(frozen=True)
class Execute:
    """Answer: the records that the statement brings to the views' deltas."""

    statement: AccountStatement


@dataclass(frozen=True)
class Pause:
    """Nothing, once it is so; at any moment before, anything else."""

    until: Callable[[], bool] = lambda: True


@dataclass
class Client:
    """Who asks: a transaction, or an apply process, which has no xid."""

    xid: str = ""
    node: int = 0
    source: str = ""
    begin: int = 0
    is_committing: bool = False
    accounts: set[str] = field(default_factory=set)
    renamed: list[tuple[str, str]] = field(default_factory=list)
    records: list[DeltaRecord] = field(default_factory=list)


class DeferredDatabase:
    """`views`: what they show at first; `skews`: by node, how far its clock is before `now`."""

    def __init__(self, views: Mapping[str, Groups], skews: Sequence[int] = (0, 0)) -> None:
        self.now = 0
        self.skews = list(skews)
        self.refreshed = dict.fromkeys(views, 0)
        self.views: dict[str, Groups | None] = {**views}
        """None where a step took what cannot be: a group with fewer than no rows."""
        self.steps: list[ApplyStep] = []
        self.states: list[Groups | None] = []
        self.ended: dict[str, tuple[Client, int]] = {}
        self.commit_times: dict[str, int] = {}
        self.log: dict[str, list[Client]] = {}
        """Committed transactions of each source, in order."""
        self._delta: dict[str, list[DeltaRecord]] = {view: [] for view in self.refreshed}
        self._commit_records: list[tuple[str, int]] = []
        self._locked: dict[str, str] = {}
        self._writers: dict[str, dict[str, int]] = {}
        self._names: dict[str, str] = {}
        self._ids = 0

    def asked(self, request: Any, by: Client) -> Any:
        """The answer, or WAITS."""
        return _ANSWERS[type(request)](self, request, by)

    def clock(self, node: int) -> int:
        """What the node's clock shows."""
        return self.now + self.skews[node]

    def rolled_back(self, client: Client) -> None:
        """The transaction was never there."""
        for delta in self._delta.values():
            delta[:] = [record for record in delta if record.xid != client.xid]
        self._commit_records = [r for r in self._commit_records if r[0] != client.xid]
        for account, name in reversed(client.renamed):
            self._names[account] = name
        self.commit_times.pop(client.xid, None)
        self._release(client)

    def transactions(self) -> list[DeferredTransaction]:
        """All that committed, in the order of their ends."""
        places = {c.xid: n for log in self.log.values() for n, c in enumerate(log, 1)}
        return [
            DeferredTransaction(
                xid,
                client.begin,
                self.commit_times[xid],
                end,
                _by_view(client.records),
                frozenset(client.accounts),
                client.source,
                places[xid],
            )
            for xid, (client, end) in self.ended.items()
        ]

    def _lock(self, request: LockAccount, by: Client) -> Any:
        if self._locked.setdefault(request.account, by.xid) != by.xid:
            return WAITS
        by.accounts.add(request.account)
        return None

    def _execute(self, request: Execute, by: Client) -> list[DeltaRecord]:
        records = [self._record(by, *change) for change in self._changes(request.statement, by)]
        by.records += records
        return records

    def _changes(self, statement: AccountStatement, by: Client) -> list[GroupAmounts]:
        account, amount, name = statement.account.id, statement.amount, statement.name
        if name is None:
            view = WITHDRAWALS if amount < 0 else DEPOSITS
            return [(view, (account,), (1, amount))]
        old = self._names.get(account, NAMES[0])
        if old == name:
            return []
        by.renamed.append((account, old))
        self._names[account] = name
        return [(OWNERS, (account, old), (-1,)), (OWNERS, (account, name), (1,))]

    def _record(self, by: Client, view: str, group: Any, amounts: tuple[int, ...]) -> DeltaRecord:
        self._ids += 1
        return DeltaRecord(self._ids, by.xid, view, group, amounts)

    def _read_clock(self, _: ReadClock, by: Client) -> int:
        if by.is_committing:
            self.commit_times[by.xid] = self.now
        return self.clock(by.node)

    def _lock_for_writing(self, request: LockForWriting, by: Client) -> None:
        self._writers.setdefault(request.table, {})[by.xid] = self.clock(by.node)

    def _unlock(self, request: Unlock, by: Client) -> None:
        del self._writers[request.table][by.xid]

    def _lock_for_reading(self, request: LockForReading, _: Client) -> Any:
        held = self._writers.get(request.table, {}).values()
        return WAITS if any(time <= request.upto for time in held) else None

    def _insert(self, request: InsertRecord, _: Client) -> None:
        self._delta[request.record.view].append(request.record)

    def _insert_commit(self, request: InsertCommitRecord, _: Client) -> None:
        self._commit_records.append((request.xid, request.timestamp))

    def _end(self, _: EndTransaction, by: Client) -> None:
        self.ended[by.xid] = (by, self.now)
        self.commit_times.setdefault(by.xid, self.now)
        self.log.setdefault(by.source, []).append(by)
        self._release(by)

    def _release(self, client: Client) -> None:
        self._locked = {item: xid for item, xid in self._locked.items() if xid != client.xid}
        for writers in self._writers.values():
            writers.pop(client.xid, None)

    def _read(self, request: ReadRecords, _: Client) -> Any:
        found = [
            record
            for record in self._delta[request.view]
            if record.timestamp is not None and request.after < record.timestamp <= request.upto
        ]
        committed = [record for record in found if record.xid in self.ended]
        return WAITS if request.waits and len(committed) < len(found) else committed

    def _read_later(self, request: ReadLaterRecords, _: Client) -> list[DeltaRecord]:
        delta = self._delta[request.view]
        return [r for r in delta if r.timestamp is not None and r.timestamp > request.after]

    def _read_commits(self, request: ReadCommitRecords, _: Client) -> Any:
        found = [x for x, time in self._commit_records if request.after < time <= request.upto]
        return WAITS if any(xid not in self.ended for xid in found) else found

    def _retrieve(self, request: RetrieveRecords, _: Client) -> list[DeltaRecord]:
        return [record for record in self._delta[request.view] if record.xid in request.xids]

    def _apply(self, request: ApplyRecords, _: Client) -> None:
        view = request.view
        self.refreshed[view] = request.upto
        before = self.views[view]
        try:
            net = net_effect(request.records)
            self.views[view] = None if before is None else rolled(before, net)
        except ValueError:
            self.views[view] = None
        rows = tuple(record.id for record in request.records)
        self.steps.append(ApplyStep(view, request.upto, rows))
        self.states.append(self.views[view])

    def _purge(self, request: PurgeCommitRecords, _: Client) -> None:
        self._commit_records = [r for r in self._commit_records if r[1] > request.upto]

    def _pause(self, request: Pause, _: Client) -> Any:
        return None if request.until() else WAITS


_ANSWERS: Final[Mapping[type, Callable[[DeferredDatabase, Any, Client], Any]]] = {
    LockAccount: DeferredDatabase._lock,
    Execute: DeferredDatabase._execute,
    Pause: DeferredDatabase._pause,
    ReadClock: DeferredDatabase._read_clock,
    LockForWriting: DeferredDatabase._lock_for_writing,
    Unlock: DeferredDatabase._unlock,
    LockForReading: DeferredDatabase._lock_for_reading,
    InsertRecord: DeferredDatabase._insert,
    InsertCommitRecord: DeferredDatabase._insert_commit,
    EndTransaction: DeferredDatabase._end,
    ReadRecords: DeferredDatabase._read,
    ReadLaterRecords: DeferredDatabase._read_later,
    ReadCommitRecords: DeferredDatabase._read_commits,
    RetrieveRecords: DeferredDatabase._retrieve,
    ApplyRecords: DeferredDatabase._apply,
    PurgeCommitRecords: DeferredDatabase._purge,
}


def _by_view(records: Iterable[DeltaRecord]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for record in records:
        found.setdefault(record.view, []).append(record.id)
    return found
