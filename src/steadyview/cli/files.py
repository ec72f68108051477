"""Files that a command writes for the user."""

from __future__ import annotations

import os
from pathlib import Path

from steadyview.errors import ConfigError


def check_writable(file: Path) -> None:
    """Before long work: ConfigError if its result could not be written there."""
    folder = file.absolute().parent
    if file.is_dir():
        raise _cannot_write(file, "it is a folder")
    if not folder.is_dir():
        raise _cannot_write(file, f'there is no folder "{folder}"')
    if not os.access(file if file.exists() else folder, os.W_OK):
        raise _cannot_write(file, "permission denied")


def write(file: Path, text: str) -> None:
    """Write the text, in place of what was there."""
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise _cannot_write(file, error.strerror or str(error)) from None


def _cannot_write(file: Path, why: str) -> ConfigError:
    return ConfigError(f'cannot write "{file}"', detail=why, hint="name another file")
