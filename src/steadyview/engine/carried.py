"""An error of ours on its way through Spark: what a task or a statement raised, with all its parts.

Spark passes on what a Python worker or RAISE_ERROR raises as text, and nothing else. So the error
travels in the text: readable parts first, for whoever sees it unwrapped, the packed error behind.
"""

from __future__ import annotations

import base64
import json
import re
from typing import Any

from steadyview import errors
from steadyview.errors import ColumnLost, SteadyviewError

_CARRIED = re.compile(
    r"(?:\[USER_RAISED_EXCEPTION\]|Carried:).{0,4000}?"
    r"<steadyview ([A-Za-z0-9+/=]+)(?: ([A-Za-z0-9+/=\s]*))?>",
    re.DOTALL,
)
"""Behind the name of what was raised: a plan in the text of another error may hold it as well."""
_ROW = "{row}"
_SHOWN = 300
_PARTS = ("message", "detail", "hint", "source", "relation", "column")


class Carried(Exception):
    """An error of ours on its way from a task to the driver, as text that survives any wrapping."""

    def __init__(self, error: SteadyviewError) -> None:
        super().__init__(f"{error} <steadyview {_packed(error)}>")


def raising(error: SteadyviewError, row: str) -> str:
    """A SQL expression that raises the error; `{row}` in its detail shows the row.

    `row` is a SQL expression of the row, a struct.
    """
    shown = f"SUBSTRING(TO_JSON({row}, MAP('ignoreNullFields', 'false')), 1, {_SHOWN})"
    before, _, behind = str(error).partition(_ROW)
    token = literal(f"{behind} <steadyview {_packed(error)} ")
    told = f"CONCAT({literal(before)}, {shown}, {token}, BASE64(ENCODE({shown}, 'UTF-8')), '>')"
    return f"RAISE_ERROR({told})"


def _packed(error: SteadyviewError) -> str:
    parts = {p: getattr(error, p) for p in _PARTS if getattr(error, p, None) is not None}
    text = json.dumps({"kind": type(error).__name__, **parts})
    return base64.b64encode(text.encode()).decode()


def literal(value: str) -> str:
    """A text as SQL."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"


def carried(error: Exception) -> SteadyviewError | None:
    """The error of ours that travelled in Spark's, None if none did."""
    found = _CARRIED.search(str(error))
    if not found:
        return None
    row = base64.b64decode(found[2]).decode() if found[2] else None
    return _unpacked(json.loads(base64.b64decode(found[1])), row)


def _unpacked(parts: dict[str, Any], row: str | None) -> SteadyviewError:
    kind = getattr(errors, parts.pop("kind"), SteadyviewError)
    if kind is not ColumnLost:
        parts = {k: v for k, v in parts.items() if k in ("message", "detail", "hint", "source")}
    if row is not None:
        parts["detail"] = str(parts.get("detail", _ROW)).replace(_ROW, row)
    error: SteadyviewError = kind(parts.pop("message"), **parts)
    return error
