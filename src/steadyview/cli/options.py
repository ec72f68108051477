"""The options that many commands share, spelled and explained the same everywhere."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from steadyview.cli.completion import source_names, view_names

HERE = Path()

ProjectOption = Annotated[
    Path,
    typer.Option(
        "--project",
        metavar="DIR",
        help="The project's folder; here if none.",
        show_default=False,
    ),
]
ViewArgument = Annotated[
    str, typer.Argument(metavar="VIEW", help="The view's name.", autocompletion=view_names)
]
SourceArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="The source's name.", autocompletion=source_names)
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Results (and errors) as JSON, for scripts.")
]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show the whole traceback of an error.")]


def parse_at(text: str | None) -> int | datetime | None:
    """A point in the warehouse's order: all digits are a cn, anything else an ISO time.

    A time without a zone is UTC.

    >>> parse_at("42")
    42
    >>> parse_at("2026-11-16T10:00").isoformat()
    '2026-11-16T10:00:00+00:00'
    """
    if text is None:
        return None
    if text.isascii() and text.isdigit():
        return int(text)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f'"{text}" is neither a commit number nor an ISO time such as 2026-11-16T10:00:00Z'
        ) from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def parse_staleness(text: str | None) -> timedelta | None:
    """How old an answer may be; unlike other lengths of time it may be none.

    >>> parse_staleness("5m"), parse_staleness("0s")
    (datetime.timedelta(seconds=300), datetime.timedelta(0))
    """
    from steadyview.views.trailing import staleness

    if text is None:
        return None
    try:
        return staleness(text)
    except ValueError:
        told = f'"{text}" is no length of time such as 0s, 30s, 5m or 1h'
        raise typer.BadParameter(told) from None


def parse_start(text: str) -> int | str:
    """Where a reader of changes begins: a cn, "start" or "now".

    >>> parse_start("42"), parse_start("Now")
    (42, 'now')
    """
    if text.isascii() and text.isdigit():
        return int(text)
    if text.lower() not in ("start", "now"):
        raise typer.BadParameter(f'"{text}" is no beginning: say start, now or a commit number')
    return text.lower()


_UNITS = {"s": "seconds", "m": "minutes", "h": "hours"}
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|seconds?|minutes?|hours?)")


def parse_time(text: str | None) -> timedelta | None:
    """A length of time: a number of seconds, minutes or hours, more than none.

    >>> parse_time("30s"), parse_time("1.5 minutes")
    (datetime.timedelta(seconds=30), datetime.timedelta(seconds=90))
    """
    if text is None:
        return None
    found = _TIME.fullmatch(text.strip().lower())
    if not found or float(found[1]) == 0:
        raise typer.BadParameter(f'"{text}" is no length of time such as 30s, 5m or 1h')
    return timedelta(**{_UNITS[found[2][0]]: float(found[1])})
