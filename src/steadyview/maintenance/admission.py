"""The order in which whole transactions are processed, where some span sources.

A transaction is admitted when all its parts have arrived and every earlier transaction of each of
its sources was admitted; whatever comes behind an incomplete part at its source waits.

Zhuge et al., PDIS 1996, section 5.4, settles when a view may be changed but not this order; without
it a later transaction of one source overtakes a held part, and the view does not even converge.
Not promised: an end, where global transactions were committed in different orders at two sources.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

from steadyview.maintenance.events import Update

H = TypeVar("H")


class Admission(Generic[H]):
    """Holds the parts back; one queue per source."""

    def __init__(self) -> None:
        self._queues: dict[str, deque[Update[H]]] = {}

    def arrived(self, update: Update[H]) -> Iterator[list[Update[H]]]:
        """The transactions that this message lets in, in order, each as its parts."""
        self._queues.setdefault(update.source, deque()).append(update)
        while (parts := self._complete()) is not None:
            for part in parts:
                self._queues[part.source].popleft()
            yield parts

    @property
    def waiting(self) -> bool:
        """Whether anything was received that is not admitted yet."""
        return any(self._queues.values())

    def held(self) -> list[Update[H]]:
        """What was received and is not admitted yet."""
        return [update for queue in self._queues.values() for update in queue]

    def _complete(self) -> list[Update[H]] | None:
        """The parts of the first transaction that heads the queues of all its sources."""
        heads = sorted((q[0] for q in self._queues.values() if q), key=lambda u: u.number)
        for head in heads:
            parts = [other for other in heads if other.transaction == head.transaction]
            if len(parts) == head.parts:
                return parts
        return None
