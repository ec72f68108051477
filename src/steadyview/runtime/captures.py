"""All sources of a warehouse being captured, or somebody else capturing them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from steadyview.catalog import Catalog
from steadyview.changes import RelationSchema, StreamPosition
from steadyview.errors import (
    ChangesLost,
    SourceDiverged,
    SourceUnavailable,
    SteadyviewError,
    TransientError,
)
from steadyview.runtime.capture import (
    REFUSED_SECONDS,
    RETRY_SECONDS,
    TOGETHER_SECONDS,
    Capture,
    Conditions,
    LeftOut,
)
from steadyview.runtime.gatekeeper import Gatekeeper
from steadyview.runtime.parts import Parts
from steadyview.sources.contract import Source
from steadyview.update_log import UpdateLog

PATIENCE = 60.0
"""Seconds to wait until capture has passed a snapshot's horizon."""


class Captures:
    """One capture thread per source; `news` wakes whoever waits for admitted transactions.

    Any thread may ask and wait. Which captures there are is changed by the thread of the loop only,
    under names that are there already.
    """

    def __init__(
        self,
        sources: Iterable[Source],
        relations: Mapping[str, Sequence[RelationSchema]],
        catalog: Catalog,
        log: UpdateLog,
        away: frozenset[str] = frozenset(),
        conditions: Conditions | None = None,
    ) -> None:
        """`away`: sources that did not answer yet; each is set up when it does."""
        self.conditions = conditions or Conditions.free(catalog)
        self.conditions.gates.bound = self._wake
        self.news = self.conditions.news
        self._catalog = catalog
        self._log = log
        self._threads = {
            s.name: Capture(
                s,
                relations[s.name],
                catalog,
                log,
                self.conditions,
                prepared=s.name not in away,
            )
            for s in sources
        }

    def start(self) -> None:
        """Begin capturing, with the gates open that the views want by now."""
        gates = self.conditions.gates
        gates.follow()
        # who is ahead of its gate anyway is not to get further into it
        gates.tend()
        for thread in self._threads.values():
            thread.start()

    def close_gates(self) -> None:
        """Wait until the times that have come are bound: no longer than the limit of gates."""
        gates = self.conditions.gates
        gates.follow()
        while gates.waiting() and self.conditions.watch.agrees():
            gates.tend()
            self.wait_for_news(TOGETHER_SECONDS)

    def _wake(self) -> None:
        with self.news:
            self.news.notify_all()

    def stop(self) -> None:
        """End after the flushes under way."""
        for thread in self._threads.values():
            thread.stop()
        self._wake()
        for thread in self._threads.values():
            if thread.is_alive():
                thread.join(PATIENCE)

    def stop_one(self, source: str) -> None:
        """End the capture of one source, after the flush under way."""
        thread = self._threads[source]
        thread.stop()
        if thread.is_alive():
            thread.join(PATIENCE)
        # until it begins again, and for good if that fails
        thread.error = SourceUnavailable(
            f'source "{source}" is not captured: it is being set up anew', source=source
        )
        if thread.is_alive():
            # it could still write its position over that of the capture to come
            raise SourceUnavailable(
                f'the capture of source "{source}" did not end within {PATIENCE:.0f} s',
                hint="stop steadyview run, and give the command again",
                source=source,
            )

    def begin_one(self, source: Source, relations: Sequence[RelationSchema]) -> None:
        """Capture a source from its beginning; its earlier capture has ended."""
        capture = Capture(source, relations, self._catalog, self._log, self.conditions)
        self._threads[source.name] = capture
        capture.start()

    def wait_for(self, source: str, position: StreamPosition) -> None:
        """Until everything before the position is admitted."""
        self._threads[source].wait_for(position, PATIENCE)

    def wait_for_news(self, timeout: float) -> None:
        """Until something was admitted or failed, or the time is over."""
        with self.news:
            self.news.wait(timeout)

    def available(self) -> frozenset[str]:
        """The sources that answer as far as we know."""
        now = time.monotonic()
        return frozenset(
            n
            for n, t in self._threads.items()
            if t.error is None and (t.left_out is None or t.left_out.until < now)
            if not t.held_back
        )

    def errors(self) -> dict[str, SteadyviewError]:
        """What is wrong with which source."""
        troubles = ((n, t.trouble()) for n, t in self._threads.items())
        return {name: error for name, error in troubles if error is not None}

    def ended(self) -> dict[str, SteadyviewError]:
        """The sources whose past is not what was captured: nobody captures them any more."""
        found = {n: t.error for n, t in self._threads.items()}
        return {n: e for n, e in found.items() if isinstance(e, ChangesLost | SourceDiverged)}

    def leave_out(self, error: SteadyviewError) -> bool:
        """Leave the source that the error is about out for a while; False if it is about none."""
        if error.source not in self._threads:
            return False
        wait = RETRY_SECONDS if isinstance(error, TransientError) else REFUSED_SECONDS
        now = time.monotonic()
        left = LeftOut(error, now + wait, now + wait + RETRY_SECONDS)
        self._threads[error.source].left_out = left
        return True

    def lag(self, source: str) -> float | None:
        """Seconds from the newest captured commit to its admission; None if the source is away."""
        thread = self._threads.get(source)
        return None if thread is None or thread.error is not None else thread.lag

    def heard(self) -> dict[str, int]:
        """By source, the last time at which all that it had delivered was admitted."""
        found = ((name, thread.heard) for name, thread in self._threads.items())
        return {name: heard for name, heard in found if heard is not None}

    def changes(self) -> int:
        """Row images captured so far."""
        return sum(t.changes for t in self._threads.values())


def conditions(parts: Parts) -> Conditions:
    """Of all captures of an open warehouse."""
    project = parts.project
    gates = Gatekeeper(parts.catalog, parts.clock, project.gate_limit, project.timezone)
    return Conditions(gates, parts.watch)


def elsewhere(
    catalog: Catalog, sources: Mapping[str, Source], holder_there: Callable[[], bool]
) -> Callable[[str, StreamPosition], None]:
    """Waiting while another process captures: its progress shows in the catalog."""

    def wait_for(source: str, position: StreamPosition) -> None:
        deadline = time.monotonic() + PATIENCE
        pause = threading.Event()
        while True:
            reached = catalog.sources.state(source).position
            if reached is not None and position <= sources[source].position(reached):
                return
            if time.monotonic() > deadline or not holder_there():
                raise SourceUnavailable(
                    f'the changes of source "{source}" up to {position} were not captured in time',
                    hint="is steadyview run still working? see: steadyview status",
                )
            pause.wait(0.05)

    return wait_for
