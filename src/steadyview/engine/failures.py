"""What goes wrong while Spark works, told in our words.

Four causes are told from all others: an error of ours that a task or a statement raised
(`carried`), a full disk, a file of the warehouse that is gone, and one that cannot be read. They,
and whether the data are to blame, are judged by Java's classes and by Spark's error conditions and
SQLSTATEs, wherever in the chain of causes they stand (`causes`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException

from steadyview.delta.failures import damaged, file_damaged, unavailable
from steadyview.engine.carried import carried
from steadyview.engine.causes import Cause, causes
from steadyview.errors import DefiniteError, SteadyviewError

SparkError = (PySparkException, Py4JJavaError)
"""Whatever Spark raises: what PySpark knows, and errors of Java that it hands out as they come."""
_FULL = re.compile(r"No space left on device|Disk quota exceeded")
"""Words: Java passes an error of the operating system on as its text, without the number."""
_MISSING_KINDS = frozenset({"java.io.FileNotFoundException", "java.nio.file.NoSuchFileException"})
_MISSING = frozenset({"PATH_NOT_FOUND", "FAILED_READ_FILE.FILE_NOT_EXIST"})
_UNREADABLE_KINDS = frozenset({"org.apache.hadoop.fs.ChecksumException"})
_UNREADABLE = frozenset({"FAILED_READ_FILE", "CANNOT_READ_FILE_FOOTER"})
"""Conditions, before the first dot."""
_FILE = re.compile(r"file:(?://)?(/[^\n]*?\.parquet)")
_BEHIND = re.compile(r"; line \d|;\n'|\n\n|\n== (?:SQL|DataFrame)")
"""Where Spark goes on with plans and statements of ours."""
_NO_WAY = re.compile(r' If necessary set "spark\.sql\.ansi\.enabled" to "false" to [^.]*\.')
"""Spark's advice that is none here: views are computed with ANSI arithmetic, whatever is set."""
_DATA_STATES = ("22", "23", "54", "P0")
"""Classes of SQLSTATE: a value that an expression cannot take (22), a key twice in a map (23), a
value too big (54), an error raised by the statement itself (P0)."""


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
    if ours := carried(error):
        return ours
    chain = causes(error)
    for link in chain:
        if full := _FULL.search(link.message):
            return unavailable(folder, OSError(full[0]))
    for link in chain:
        if link.kind in _MISSING_KINDS or link.condition in _MISSING:
            return damaged(folder, "lacks a file", OSError(link.line))
    for link in chain:
        if link.kind in _UNREADABLE_KINDS or link.condition.partition(".")[0] in _UNREADABLE:
            return _unreadable(link, chain, folder)
    return None


def _unreadable(found: Cause, chain: Sequence[Cause], folder: Path) -> SteadyviewError:
    files = (_FILE.search(link.message) for link in (found, *chain))
    named = next((file[1] for file in files if file), None)
    path = folder if named is None else Path(unquote(named))
    return file_damaged(path, (chain[-1].message or chain[-1].kind).splitlines()[0])


def is_data_error(error: Exception) -> bool:
    """Whether a value is to blame: trying again cannot help, other data can."""
    if not isinstance(error, SparkError):
        return False
    return any(link.state.startswith(_DATA_STATES) for link in causes(error))


def reason(error: Exception) -> str:
    """What went wrong, in a few lines: an error of ours, or Spark's without the plan behind."""
    if isinstance(error, SteadyviewError):
        return str(error)
    if ours := carried(error):
        return str(ours)
    told = [link.message for link in causes(error) if link.of_spark and link.message]
    message = _NO_WAY.sub("", told[-1] if told else str(error))
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
