"""Opening the warehouse of a project, and closing it whatever happens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def opened(project: Path) -> Iterator[Any]:
    """The project's warehouse, closed at the end."""
    # Imported late: `steadyview --help` and `init` should not wait for Spark's libraries.
    import steadyview

    with steadyview.open(project) as warehouse:
        yield warehouse
