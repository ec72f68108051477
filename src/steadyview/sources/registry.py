"""The only place that knows every source family."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steadyview.errors import ConfigError
from steadyview.sources.contract import Owner, Source
from steadyview.sources.postgres.source import PostgresSource
from steadyview.sources.sqlite.source import SqliteSource

NOBODY = Owner("00000000")
"""For a look at a source without a warehouse."""


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
        return SqliteSource(name, settings, base_dir, owner)
    raise ConfigError(
        f'source "{name}" has the unknown type "{family}"', hint='known are: "postgresql", "sqlite"'
    )
