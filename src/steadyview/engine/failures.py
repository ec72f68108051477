"""What goes wrong while Spark works, told in our words.

Spark wraps what its tasks raise in texts and exceptions of its own. Four causes are found in them:
an error of ours that a task or a statement raised (it travels with all its parts), a full disk, a
file of the warehouse that is gone, and one that cannot be read. Whether the data are to blame is
asked of Spark's own error conditions, wherever in the chain of causes they are; only where an error
arrives as mere text is the text looked at.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException

from steadyview import errors
from steadyview.delta.failures import damaged, file_damaged, unavailable
from steadyview.errors import ColumnLost, DefiniteError, SteadyviewError

SparkError = (PySparkException, Py4JJavaError)
"""Whatever Spark raises: what PySpark knows, and errors of Java that it hands out as they come."""
_CARRIED = re.compile(
    r"(?:\[USER_RAISED_EXCEPTION\]|Carried:).{0,4000}?"
    r"<steadyview ([A-Za-z0-9+/=]+)(?: ([A-Za-z0-9+/=\s]*))?>",
    re.DOTALL,
)
"""Behind the name of what was raised: a plan in the text of another error may hold it as well."""
_ROW = "{row}"
_SHOWN = 300
_FULL = re.compile(r"No space left on device|Disk quota exceeded")
_MISSING = re.compile(r"FileNotFoundException|PATH_NOT_FOUND|FILE_NOT_EXIST|NoSuchFileException")
_UNREADABLE = re.compile(
    r"\[(?:FAILED_READ_FILE|CANNOT_READ_FILE_FOOTER)|is not a Parquet file|ChecksumException"
)
_FILE = re.compile(r"file:(?://)?(/[^\n]*?\.parquet)")
_BEHIND = re.compile(r"; line \d|;\n'|\n\n|\n== (?:SQL|DataFrame)")
"""Where Spark goes on with plans and statements of ours."""
_PARTS = ("message", "detail", "hint", "source", "relation", "column")
_DATA_STATE = re.compile(r"(?:22|23|54|P0)\w{3}")
"""SQLSTATE: a value that an expression cannot take (22), a key twice in a map (23), a value too big
(54), an error raised by the statement itself (P0)."""
_DATA_TEXT = re.compile(
    rf"SQLSTATE: {_DATA_STATE.pattern}|\[(?:ARITHMETIC_OVERFLOW|DIVIDE_BY_ZERO|CAST_[A-Z_]+)"
)


class Carried(Exception):
    """An error of ours on its way from a task to the driver, as text that survives any wrapping.

    Whoever sees the text unwrapped can read it: the parts come first, the packed error behind.
    """

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


@contextmanager
def spark_told(folder: Path) -> Iterator[None]:
    """Raise our own error for what goes wrong with a source or with the files below `folder`."""
    try:
        yield
    except FileNotFoundError as error:
        raise damaged(folder, "lacks a file", error) from error
    except OSError as error:
        raise unavailable(folder, error) from error
    except SparkError as error:
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
    if found := _UNREADABLE.search(text):
        return _unreadable(text, found.start(), folder)
    return None


def _unreadable(text: str, place: int, folder: Path) -> SteadyviewError:
    file = _FILE.search(text, text.rfind("\n", 0, place) + 1) or _FILE.search(text)
    path = Path(unquote(file[1])) if file else folder
    return file_damaged(path, _innermost(text))


def _innermost(text: str) -> str:
    """The last cause that a Java stack trace names, without the class."""
    causes = re.findall(r"^Caused by: (?:[\w.$]+: )?(.*)$", text, re.MULTILINE)
    return str(causes[-1]) if causes else text.splitlines()[0]


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


def is_data_error(error: Exception) -> bool:
    """Whether a value is to blame: trying again cannot help, other data can."""
    if not isinstance(error, SparkError):
        return False
    states = [state for state, _ in _conditions(error) if state]
    if states:
        return any(_DATA_STATE.fullmatch(state) for state in states)
    return bool(_DATA_TEXT.search(str(error)))


def reason(error: Exception) -> str:
    """What went wrong, in a few lines: an error of ours, or Spark's without the plan behind."""
    if isinstance(error, SteadyviewError):
        return str(error)
    if ours := carried(error):
        return str(ours)
    told = [message for _, message in _conditions(error) if message]
    message = told[-1] if told else str(error)
    return _BEHIND.split(message.strip(), maxsplit=1)[0].strip()[:600]


def described(error: Exception) -> SteadyviewError | None:
    """Any error of Spark's as one fact for people; None if it is none of Spark's."""
    if not isinstance(error, SparkError):
        return None
    if known := cause(error, Path("warehouse")):
        return known
    if isinstance(error, AnalysisException):
        return DefiniteError("Spark refused the statement", detail=reason(error))
    if is_data_error(error):
        return DefiniteError(
            "Spark cannot compute a value",
            detail=reason(error),
            hint="write the query so that it can be computed for every row: with NULLIF, try_cast, "
            "try_divide, or a wider type",
        )
    return SteadyviewError(
        "Spark failed",
        detail=reason(error).splitlines()[0],
        hint="run the command again with --debug and report what it prints",
    )


def _conditions(error: Exception) -> list[tuple[str | None, str]]:
    """SQLSTATE and message of every error of Spark's in the chain of causes, outermost first."""
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    found: list[tuple[str | None, str]] = []
    try:
        while java is not None:
            # any error of Java has a message, only Spark's have a state
            with suppress(Py4JError):
                found.append((java.getSqlState(), str(java.getMessage() or "")))
            java = java.getCause()
    except (Py4JError, OSError):
        # Spark is gone: what is known by now has to do
        pass
    return found


def _line_of(text: str, place: int) -> str:
    return text[text.rfind("\n", 0, place) + 1 :].split("\n", 1)[0]
