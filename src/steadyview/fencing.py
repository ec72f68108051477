"""Who lost a warehouse's lease commits nothing to its tables any more.

A commit is a compare-and-swap on the version that was read before the check. So whoever is stopped
between the two is refused as soon as its successor has committed to the same table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

Check = Callable[[], None]
_checks: dict[Path, Check] = {}


@contextmanager
def fenced(folder: Path, check: Check) -> Iterator[None]:
    """Until the end of the block, `check` comes before every commit to a table below the folder."""
    _checks[folder] = check
    try:
        yield
    finally:
        _checks.pop(folder, None)


def check_fence(table: Path) -> None:
    """Raise what the check of the table's warehouse raises."""
    for folder, check in list(_checks.items()):
        if folder in table.parents:
            check()
