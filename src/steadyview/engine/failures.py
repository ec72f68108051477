"""What goes wrong while Spark works, told in our words.

Spark wraps what its tasks raise in texts of its own. Three causes are found in them: an error of
ours that a task raised (it travels with all its parts), a full disk, and a file of the warehouse
that is gone. Everything else stays what it is. (PySpark hands out an error of
Java that it does not know, a full disk among them, as it comes.)
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from steadyview import errors
from steadyview.delta.failures import damaged, unavailable
from steadyview.errors import ColumnLost, SteadyviewError

_CARRIED = re.compile(r"<steadyview ([A-Za-z0-9+/=]+)>")
_FULL = re.compile(r"No space left on device|Disk quota exceeded")
_MISSING = re.compile(r"FileNotFoundException|PATH_NOT_FOUND|FILE_NOT_EXIST|NoSuchFileException")
_PARTS = ("message", "detail", "hint", "source", "relation", "column")


class Carried(Exception):
    """An error of ours on its way from a task to the driver, as text that survives any wrapping."""

    def __init__(self, error: SteadyviewError) -> None:
        parts = {p: getattr(error, p) for p in _PARTS if getattr(error, p, None) is not None}
        text = json.dumps({"kind": type(error).__name__, **parts})
        super().__init__(f"<steadyview {base64.b64encode(text.encode()).decode()}>")


@contextmanager
def spark_told(folder: Path) -> Iterator[None]:
    """Raise our own error for what goes wrong with a source or with the files below `folder`."""
    try:
        yield
    except FileNotFoundError as error:
        raise damaged(folder, "lacks a file", error) from error
    except OSError as error:
        raise unavailable(folder, error) from error
    except (PySparkException, Py4JJavaError) as error:
        known = cause(error, folder)
        if known is None:
            raise
        raise known from error


def cause(error: Exception, folder: Path) -> SteadyviewError | None:
    """The error of ours behind Spark's, None if there is none."""
    text = str(error)
    if ours := carried(error):
        return ours
    if found := _FULL.search(text):
        return unavailable(folder, OSError(found[0]))
    if found := _MISSING.search(text):
        return damaged(folder, "lacks a file", OSError(_line_of(text, found.start())))
    return None


def carried(error: Exception) -> SteadyviewError | None:
    """The error of ours that travelled in Spark's, None if none did."""
    found = _CARRIED.search(str(error))
    return _unpacked(json.loads(base64.b64decode(found[1]))) if found else None


def _unpacked(parts: dict[str, Any]) -> SteadyviewError:
    kind = getattr(errors, parts.pop("kind"), SteadyviewError)
    if kind is not ColumnLost:
        parts = {k: v for k, v in parts.items() if k in ("message", "detail", "hint", "source")}
    error: SteadyviewError = kind(parts.pop("message"), **parts)
    return error


def _line_of(text: str, place: int) -> str:
    return text[text.rfind("\n", 0, place) + 1 :].split("\n", 1)[0]
