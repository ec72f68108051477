"""The log streams of one served view in one manager: entries in, operations out, positions behind.

    poll      entries behind what was received, of transactions that are admitted
    apply     what the view manager asks for, many records in one call per stream
    register  a stream's position, in the store, after its records; never the other way round

Nothing here is kept: who comes next begins at the registered positions. What is done twice, records
tell by their signatures. An operation of the default form has no answer, so that requests may be
gathered; they count as done when the store has taken the whole call.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from steadyview.catalog import Catalog
from steadyview.errors import OutsideRetention
from steadyview.maintenance.records.additive_views import AdditiveView
from steadyview.maintenance.records.apply_if_unseen import ApplyingIfUnseen
from steadyview.maintenance.records.entries import LogEntry, LogStream
from steadyview.maintenance.records.program import UpdateProgram
from steadyview.maintenance.records.requests import ApplyIfUnseen, GuardedUpsert
from steadyview.maintenance.records.selection import KeyedView, Selection
from steadyview.maintenance.records.view_manager import ViewManager
from steadyview.runtime.managers.log_entries import LogRows, entries_of, stream_text, streams_of
from steadyview.runtime.managers.record_view import RecordView
from steadyview.serving.contract import Addition, Put, RecordStore
from steadyview.serving.layout import Records
from steadyview.update_log import UpdateLog

TRANSACTIONS = 2_000
"""That are polled at once, at most."""
TOGETHER = 1_000
"""Entries that go to the store in one call, at most."""
REGISTER = 1.0
"""Seconds after which a stream is registered that had no entry for the view."""


@dataclass(frozen=True)
class LogServed:
    """A view that is served from the log: where its records are, and how they are made."""

    store: str
    settings: Mapping[str, Any]
    records: Records
    view: RecordView

    @cached_property
    def streams(self) -> Mapping[str, LogStream]:
        """Its streams, by what leases call them. The view's id names the log's incarnation.

        A view is built anew, and has another id, where the log of a source begins anew.
        """
        found = streams_of(self.view, self.records.node)
        return {f"{self.store} {self.records.name} {stream_text(s)}": s for s in found}


class LogPruned(OutsideRetention):
    """Entries that were not applied are not in the log any more."""


class Lanes:
    """Some streams of one view; for one thread."""

    def __init__(
        self, served: LogServed, store: RecordStore, catalog: Catalog, log: UpdateLog
    ) -> None:
        self._served = served
        self._store = store
        self._catalog = catalog
        self._log = log
        self._received: dict[LogStream, int] = {}
        self._registered: dict[LogStream, int] = {}
        self._manager = ViewManager(_program(served.view), {})
        self._looked = 0.0

    def take(self, streams: Collection[LogStream]) -> None:
        """Have exactly these streams, from their registered positions on. Nothing is under way."""
        if set(streams) == self._received.keys():
            return
        known = self._store.positions(self._served.records)
        at: dict[Any, int] = {
            s: known[stream_text(s)].entry if stream_text(s) in known else 0 for s in streams
        }
        self._received, self._registered = dict(at), dict(at)
        self._manager = ViewManager(_program(self._served.view), at, together=TOGETHER)

    def poll(self) -> bool:
        """Apply what has come; whether anything had. LogPruned if some of it is gone."""
        came = [self._poll(source) for source in self._served.view.sources]
        if not any(came):
            self._register(now=time.monotonic() - self._looked > REGISTER)
        return any(came)

    @property
    def behind(self) -> int:
        """How many transactions are admitted that were not polled yet, of the slowest stream."""
        last = {s: self._catalog.sources.state(s).last_seq for s in self._served.view.sources}
        return max((last[s.source] - at for s, at in self._received.items()), default=0)

    def finish(self) -> None:
        """Register what is done."""
        self._register(now=True)

    # --- entries -----------------------------------------------------------------------------

    def _poll(self, source: str) -> bool:
        mine = [stream for stream in self._received if stream.source == source]
        last = self._catalog.sources.state(source).last_seq
        if not mine or (first := min(self._received[s] for s in mine)) >= last:
            return False
        upto = min(last, first + TRANSACTIONS)
        entries = self._entries(source, first + 1, upto)
        self._check_kept(source, first)
        busy = [s for s in mine if self._receive(s, entries.get(s, ()), upto)]
        self._apply()
        self._register(busy)
        return True

    def _entries(self, source: str, first: int, upto: int) -> dict[LogStream, list[LogEntry]]:
        view, node = self._served.view, self._served.records.node
        logs = [
            LogRows(read, self._log.rows(read.relation, first, upto))
            for read in view.reads
            if read.relation.source == source
        ]
        return entries_of(view, node, source, [log for log in logs if log.rows.num_rows])

    def _check_kept(self, source: str, first: int) -> None:
        """LogPruned unless all that was asked for was still there when it was read.

        The catalog forgets commits before their rows leave the log.
        """
        commits = self._catalog.commits
        if first < commits.seq_upto(source, commits.oldest_cn()):
            raise LogPruned(f'the update log of "{source}" behind transaction {first} is gone')

    def _receive(self, stream: LogStream, entries: Iterable[LogEntry], upto: int) -> bool:
        new = [entry for entry in entries if entry.number > self._received[stream]]
        self._manager.received(stream, new)
        self._received[stream] = max(self._received[stream], upto)
        return bool(new)

    # --- operations --------------------------------------------------------------------------

    def _apply(self) -> None:
        """Do what the manager asks for, task by task."""
        while asked := self._manager.begin():
            requests = []
            while asked:
                ((number, request),) = asked
                requests.append(request)
                asked = self._manager.answered(number, None)
            self._store_requests(requests)

    def _store_requests(self, requests: list[Any]) -> None:
        """In the order of keys, so that two managers seldom wait for each other."""
        records, view = self._served.records, self._served.view
        additions: dict[LogStream, list[Addition]] = {}
        puts: dict[LogStream, list[Put]] = {}
        for request in sorted(requests, key=lambda r: repr(r.key)):
            key: Any = request.key
            if isinstance(request, ApplyIfUnseen):
                for entry, amounts in request.additions:
                    found = Addition(key, entry.number, view.sums(amounts))
                    additions.setdefault(entry.stream, []).append(found)
            else:
                assert isinstance(request, GuardedUpsert)
                stream, names = request.entry.stream, [n for n, _ in view.layout.values]
                fields = request.fields
                values = None if fields is None else dict(zip(names, fields, strict=True))
                puts.setdefault(stream, []).append(Put(key, request.entry.number, values))
        for stream, listed in additions.items():
            self._store.add(records, stream_text(stream), listed)
        for stream, listed_puts in puts.items():
            self._store.put(records, stream_text(stream), listed_puts)

    # --- positions ---------------------------------------------------------------------------

    def _register(self, streams: Iterable[LogStream] = (), *, now: bool = False) -> None:
        """These streams, or `now` all that moved; once nothing is under way."""
        assert self._manager.is_idle
        if now:
            self._looked = time.monotonic()
        for stream in self._received if now else streams:
            at = self._received[stream]
            if at > self._registered[stream]:
                name = stream_text(stream)
                self._store.move(self._served.records, name, at, self._time(stream.source, at))
                self._registered[stream] = at

    def _time(self, source: str, seq: int) -> int:
        return committed(self._catalog, source, seq)


def committed(catalog: Catalog, source: str, seq: int) -> int:
    """The commit time of a source's transaction; 0 where it is not known any more."""
    cn = catalog.commits.cn_of(source, seq)
    return 0 if cn is None else catalog.commits.time_of(cn)


def _program(view: RecordView) -> UpdateProgram:
    """The state machine that says what an entry does to the records."""
    if view.keyed:
        return Selection(KeyedView(view.layout.view, lambda row: row))
    additive = AdditiveView(
        view.layout.view,
        key=lambda _, row: row[0],
        amounts=lambda _, row: row[1],
        rows=lambda amounts: amounts[0],
        shown=lambda _: (),
    )
    return ApplyingIfUnseen(additive)
