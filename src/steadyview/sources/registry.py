"""The only place that knows every source family."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steadyview.errors import ConfigError
from steadyview.sources.contract import Owner, Source
from steadyview.sources.postgres.source import PostgresSource
from steadyview.sources.postgres.source import left_behind as postgres_left_behind
from steadyview.sources.sqlite.source import SqliteSource
from steadyview.sources.sqlite.source import left_behind as sqlite_left_behind

NOBODY = Owner("00000000")
"""For a look at a source without a warehouse."""


def left_behind(name: str, family: str, owner: Owner) -> list[str]:
    """What the owner has set up at a source that it cannot reach: how to remove it by hand."""
    known = {"postgresql": postgres_left_behind, "sqlite": sqlite_left_behind}
    return known[family](name, owner)


def open_source(
    name: str,
    settings: Mapping[str, Any],
    base_dir: Path,
    owner: Owner = NOBODY,
    patience: int | None = None,
) -> Source:
    """The source described by one `[sources.NAME]` table; relative paths start at `base_dir`.

    `patience`: seconds after which an attempt to connect is given up, if not as the family does.
    Nothing is connected yet. Raises ConfigError for an unknown type or setting.
    """
    family = settings.get("type")
    if family == "postgresql":
        return PostgresSource(name, settings, owner, patience)
    if family == "sqlite":
        source = SqliteSource(name, settings, base_dir, owner)
        if patience is not None:
            source.patience = patience
        return source
    raise ConfigError(
        f'source "{name}" has the unknown type "{family}"', hint='known are: "postgresql", "sqlite"'
    )
