"""What the file system and `deltalake` raise, told in our words.

Full disk and other input/output errors may pass (StorageUnavailable); a table that is missing or
does not parse stays so until somebody acts (StorageDamaged).
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from steadyview.errors import StorageDamaged, StorageUnavailable

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_FULL = re.compile(r"no space left|quota exceeded|disk full", re.IGNORECASE)
"""Words: `deltalake` passes an error of the operating system on as its text, without the number."""


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Raise StorageUnavailable or StorageDamaged for whatever goes wrong at `path`."""
    try:
        yield
    except FileNotFoundError as error:
        raise damaged(path, "lacks a file", error) from error
    except pa.ArrowInvalid as error:
        raise damaged(path, "cannot be read", error) from error
    except OSError as error:
        # Arrow's own, about what a file holds, have no number of the operating system
        if error.errno is None and not _FULL.search(str(error)):
            raise damaged(path, "cannot be read", error) from error
        raise unavailable(path, error) from error
    except TableNotFoundError as error:
        raise damaged(path, "is missing", error) from error
    except CommitFailedError as error:
        raise StorageUnavailable(
            f'table "{path}" was changed while it was being written', detail=_brief(error)
        ) from error
    except DeltaError as error:
        if _FULL.search(str(error)):
            raise unavailable(path, error) from error
        raise damaged(path, "cannot be read", error) from error


def unavailable(path: Path, error: Exception) -> StorageUnavailable:
    """The error for a write or read that failed below us; says "disk full" when it is."""
    full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT) or _FULL.search(str(error))
    fact = f'disk full while writing "{path}"' if full else f'"{path}" cannot be accessed'
    hint = "free some space; work goes on by itself then" if full else None
    return StorageUnavailable(fact, detail=_brief(error), hint=hint)


def damaged(path: Path, what: str, error: Exception) -> StorageDamaged:
    """The error for a table that is not what we left there."""
    return StorageDamaged(
        f'table "{path}" {what}',
        detail=_brief(error),
        hint="restore the warehouse folder from a backup, or move it away and build it anew",
    )


def file_damaged(path: Path, what: str) -> StorageDamaged:
    """The error for one file that is not what we left there."""
    return StorageDamaged(
        f'file "{path}" is damaged',
        detail=what,
        hint="restore the warehouse folder from a backup, or move it away and build it anew",
    )


def _brief(error: Exception) -> str:
    """The error's own words on one line, without colours and backtraces."""
    lines = [line.strip(" ↳\t") for line in _COLOUR.sub("", str(error)).splitlines()]
    words = [line for line in lines if line and not re.match(r"\d+: ", line)]
    return ": ".join(words)[:300]
