"""The starter project: the files of `starter/`, and the databases that its `.sql` files describe.

Claim: nothing that exists is overwritten, and either the whole project is made or nothing begun.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from importlib.resources import files
from pathlib import Path

from steadyview.errors import ConfigError

_TEXTS = ("steadyview.toml", "views/revenue_by_region.sql", "views/order_details.sql")
_DATABASES = {"sales.db": "sales.sql", "crm.db": "crm.sql"}
_IGNORED = ".gitignore"


def create_starter(directory: Path) -> list[str]:
    """Make the project in `directory`; the files made, relative to it."""
    names = [*_TEXTS, *_DATABASES, _IGNORED]
    _refuse_existing(directory, names)
    (directory / "views").mkdir(parents=True, exist_ok=True)
    for name in _TEXTS:
        text = _template(name).replace("{project}", _project_name(directory))
        (directory / name).write_text(text, encoding="utf-8")
    for name, script in _DATABASES.items():
        _create_database(directory / name, _template(script))
    (directory / _IGNORED).write_text("warehouse/\n*.db*\n", encoding="utf-8")
    return names


def _refuse_existing(directory: Path, names: list[str]) -> None:
    if directory.exists() and not directory.is_dir():
        raise ConfigError(f'"{directory}" is not a folder')
    for name in names:
        if (directory / name).exists():
            raise ConfigError(
                f'"{directory / name}" exists already',
                detail="init overwrites nothing",
                hint="name another folder",
            )


def _project_name(directory: Path) -> str:
    """The folder's name as an identifier.

    >>> _project_name(Path("/tmp/my-shop 2"))
    'my_shop_2'
    """
    name = re.sub(r"[^A-Za-z0-9_]", "_", directory.absolute().name)
    return name if re.match(r"[A-Za-z_]", name) else f"project_{name}"


def _template(name: str) -> str:
    return (files("steadyview.cli") / "starter" / name).read_text(encoding="utf-8")


def _create_database(path: Path, script: str) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.executescript(script)
