"""The starter project: the files of `starter/`, and the databases that its `.sql` files describe.

Claim: nothing that exists is overwritten, and either the whole project is made or nothing begun.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from importlib.resources import files
from pathlib import Path

from steadyview.errors import ConfigError
from steadyview.runtime.project import as_identifier

_TEXTS = ("steadyview.toml", "views/revenue_by_region.sql", "views/order_details.sql")
_DATABASES = {"sales.db": "sales.sql", "crm.db": "crm.sql"}
_IGNORED = ".gitignore"


def create_starter(directory: Path) -> list[str]:
    """Make the project in `directory`; the files made, relative to it."""
    names = [*_TEXTS, *_DATABASES, _IGNORED]
    _refuse_existing(directory, names)
    _make_folders(directory)
    for name in _TEXTS:
        text = _template(name).replace("{project}", as_identifier(directory.absolute().name))
        (directory / name).write_text(text, encoding="utf-8")
    for name, script in _DATABASES.items():
        _create_database(directory / name, _template(script))
    (directory / _IGNORED).write_text("warehouse/\n*.db*\n", encoding="utf-8")
    return names


def _refuse_existing(directory: Path, names: list[str]) -> None:
    if directory.exists() and not directory.is_dir():
        raise ConfigError(f'"{directory}" is not a folder', hint="name another folder")
    for name in names:
        if (directory / name).exists():
            raise ConfigError(
                f'"{directory / name}" exists already',
                detail="init overwrites nothing",
                hint="name another folder",
            )


def _make_folders(directory: Path) -> None:
    try:
        (directory / "views").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f'cannot make the folder "{directory}"',
            detail=error.strerror,
            hint="name a folder in a place that you may write to",
        ) from None


def _template(name: str) -> str:
    return (files("steadyview.cli") / "starter" / name).read_text(encoding="utf-8")


def _create_database(path: Path, script: str) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.executescript(script)
