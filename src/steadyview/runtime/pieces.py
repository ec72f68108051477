"""How a backlog is cut: into pieces that are each published before the next one is begun.

A piece is some transactions (a, u] of a batch (a, b], so many that it takes a few seconds: what a
life that ends early has published stays. The number of log rows is learnt while it runs. At least
one transaction, and at least a 32nd of what is left: every piece looks at all that is left, and so
that stays a few times the work of one batch.

A life that is killed in a piece leaves a note of its size. If it had finished no other piece that
was about as large, the next life begins with a quarter of that: so there is progress however slow
the machine is. If it had, the size was right, and most of a short life goes into starting Spark.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

COLD, WARM = 20_000, 100_000
"""Log rows of a piece at first; and after Spark has shown that it can."""
LEAST = 1_000
SHARE = 32
QUICK, SLOW = 2.0, 6.0
"""Seconds: below, the next piece is twice as large; above, half."""
TAIL = 1.5
"""A rest of up to so many pieces is one."""


@dataclass(frozen=True)
class Steps:
    """The log rows of a batch: `rows[i]` of them belong to transaction `cns[i]`, ascending."""

    cns: np.ndarray
    rows: np.ndarray

    def after(self, cn: int) -> Steps:
        """Those of later transactions.

        >>> Steps(np.array([3, 5, 9]), np.array([1, 7, 2])).after(3).rows.tolist()
        [7, 2]
        """
        first = int(np.searchsorted(self.cns, cn, side="right"))
        return Steps(self.cns[first:], self.rows[first:])


def merged(steps: list[Steps]) -> Steps:
    """Of several logs: one entry per transaction.

    >>> one, other = Steps(np.array([3, 5]), np.array([1, 1])), Steps(np.array([5]), np.array([4]))
    >>> both = merged([one, other])
    >>> both.cns.tolist(), both.rows.tolist()
    ([3, 5], [1, 5])
    """
    cns = np.concatenate([s.cns for s in steps] or [np.zeros(0, np.int64)])
    rows = np.concatenate([s.rows for s in steps] or [np.zeros(0, np.int64)])
    distinct, place = np.unique(cns, return_inverse=True)
    return Steps(distinct, np.bincount(place, rows, len(distinct)).astype(np.int64))


class PieceSize:
    """Log rows per piece, remembered by one process."""

    def __init__(self) -> None:
        self.rows = COLD
        self.finished = 0
        """Pieces of about this size that this process has worked off."""
        self._cold = True
        self._careful = False

    def fits(self, rows: int) -> bool:
        """Whether so many rows are one piece."""
        return rows <= self.rows * TAIL

    def end(self, left: Steps, upto: int) -> int:
        """The last cn of the next piece of what is left; `upto` if that is all of it."""
        total = int(left.rows.sum())
        size = max(self.rows, total // SHARE)
        if total <= size * TAIL:
            return upto
        count = int(np.searchsorted(np.cumsum(left.rows), size, side="right"))
        return upto if count >= len(left.cns) else int(left.cns[max(count - 1, 0)])

    def took(self, rows: int, seconds: float) -> None:
        """Learn from a piece: from a small one nothing, from the first one that Spark is warm.

        The first one has most of its time from Spark's start, so it need not be quick to grow.

        >>> size = PieceSize()
        >>> size.took(20_000, 9.0)
        >>> size.took(20_000, 9.0)
        >>> size.rows
        10000
        """
        first, self._cold = self._cold, False
        large = rows * 2 >= self.rows
        self.finished += large
        if seconds > SLOW:
            if large and not first:
                self.rows = max(self.rows // 2, LEAST)
            return
        if large and (first or seconds < QUICK):
            self.rows *= 2
        if first and not self._careful:
            self.rows = max(self.rows, WARM)

    def interrupted(self, rows: int, finished: int) -> None:
        """The last life was killed in a piece of so many rows, after so many others about as large.

        >>> size = PieceSize()
        >>> size.interrupted(16_000, finished=0)
        >>> size.took(4_000, 1.0)
        >>> size.rows
        8000
        """
        self._careful = True
        self.rows = min(self.rows, max(rows if finished else rows // 4, LEAST))


SIZE = PieceSize()
"""What this process has learnt."""
_NOTE = "piece"


def note(folder: Path, rows: int, finished: int) -> None:
    """Write down in a batch's folder that a piece of so many rows is begun, after others."""
    (folder / _NOTE).write_text(f"{rows} {finished}")


def noted(work: Path) -> tuple[int, int] | None:
    """What `note` wrote down of the piece in which a keeper was killed; None: in none."""
    found = []
    for path in work.glob(f"batch-*/{_NOTE}"):
        # a disk that was full then has an empty note
        with suppress(OSError, ValueError):
            rows, finished = map(int, path.read_text().split())
            found.append((rows, finished))
    return min(found, default=None)
