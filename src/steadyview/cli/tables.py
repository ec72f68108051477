"""Tables for people and JSON for programs, on standard output.

Where standard output is no terminal, a table is as wide as its content: nothing is cut off.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from steadyview.cli.values import cell, json_value

_UNLIMITED = 1_000_000


def console(*, stderr: bool = False) -> Console:
    """A console that cuts nothing off when nobody watches."""
    stream = Console(stderr=stderr, highlight=False)
    if stream.is_terminal:
        return stream
    return Console(stderr=stderr, highlight=False, width=_UNLIMITED)


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    json.dump(json_value(value), sys.stdout, ensure_ascii=False, indent=2, allow_nan=False)
    print()


def table(headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
    """A table of values; a column that holds numbers is aligned to the right."""
    rows = [tuple(row) for row in rows]
    result = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for i, heading in enumerate(headings):
        numbers = any(_is_number(row[i]) for row in rows)
        result.add_column(Text(heading), justify="right" if numbers else "left", overflow="fold")
    for row in rows:
        result.add_row(*(v if isinstance(v, Text) else cell(v) for v in row))
    return result


def show(*parts: RenderableType) -> None:
    """Print the parts below each other on standard output."""
    out = console()
    for part in parts:
        out.print(part)


def note(text: str) -> None:
    """A remark for a person, on standard error."""
    console(stderr=True).print(Text(text))


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool | str | Text) and hasattr(value, "__int__")
