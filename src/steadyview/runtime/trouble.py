"""Whose trouble an error is that came up while one view was worked on.

The data's: a value that an expression cannot take, a damaged file, an impossible state. The view
stops just before it, the others go on.
A fault of ours: anything unexpected. The view is left where it is and tried again, ever later; the
others go on.
More than that: a source, the disk or Spark itself is away, a column was lost. That is raised.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from steadyview.engine.failures import SparkError, cause, is_data_error, reason
from steadyview.engine.session import ended
from steadyview.errors import ColumnLost, DefiniteError, SteadyviewError, TransientError

FIRST_WAIT, LONGEST_WAIT = 1.0, 300.0


@dataclass(frozen=True)
class Trouble:
    """Of one view: the `error` at which it stops, or the `fault` after which it is tried again.

    `mendable`: values at the source are the error; mended there, a view built anew can go on.
    """

    error: str | None = None
    fault: Exception | None = None
    mendable: bool = False


def trouble(error: Exception, spark: SparkSession, root: Path) -> Trouble:
    """What the error means for the view; raises what concerns more than this one."""
    known = (cause(error, root) or error) if isinstance(error, SparkError) else error
    if isinstance(known, TransientError | ColumnLost | OSError) or ended(spark):
        raise known from (error if known is not error else None)
    if isinstance(known, DefiniteError):
        return Trouble(error=str(known))
    if is_data_error(known):
        return Trouble(error=reason(known), mendable=True)
    return Trouble(fault=known)


@dataclass
class _Met:
    error: Exception
    times: int = 0
    due: float = 0.0


class Faults:
    """Faults of ours by view: each is tried again after twice the time, up to five minutes.

    Two threads work on views, never on the same one: an entry is changed by one of them only.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._met: dict[str, _Met] = {}

    def met(self, view: str, error: Exception) -> SteadyviewError:
        """Count it; what to tell."""
        found = self._met.setdefault(view, _Met(error))
        wait = min(FIRST_WAIT * 2**found.times, LONGEST_WAIT)
        found.error, found.times, found.due = error, found.times + 1, self._clock() + wait
        return _told(view, found)

    def over(self, view: str) -> None:
        """The view went on."""
        self._met.pop(view, None)

    def waits(self, view: str) -> bool:
        """Whether it is too early to try the view again."""
        found = self._met.get(view)
        return found is not None and self._clock() < found.due

    def check(self) -> None:
        """Raise the first one that is not over."""
        for view, found in list(self._met.items()):
            raise _told(view, found) from found.error


def _told(view: str, found: _Met) -> SteadyviewError:
    first = (reason(found.error).splitlines() or [""])[0]
    return SteadyviewError(
        f'steadyview met a fault of its own in view "{view}"',
        detail=f"{type(found.error).__name__}: {first} ({found.times} times so far)",
        hint="it is tried again, the other views go on; run steadyview run --once --debug and "
        "report what it prints",
    )
