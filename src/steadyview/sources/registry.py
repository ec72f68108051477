"""The only place that knows every source family."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steadyview.errors import ConfigError
from steadyview.sources.contract import Source
from steadyview.sources.postgres.source import PostgresSource
from steadyview.sources.sqlite.source import SqliteSource


def open_source(name: str, settings: Mapping[str, Any], base_dir: Path) -> Source:
    """The source described by one `[sources.NAME]` table; relative paths start at `base_dir`.

    Nothing is connected yet. Raises ConfigError for an unknown type or setting.
    """
    family = settings.get("type")
    if family == "postgresql":
        return PostgresSource(name, settings)
    if family == "sqlite":
        return SqliteSource(name, settings, base_dir)
    raise ConfigError(
        f'source "{name}" has the unknown type "{family}"', hint='known are: "postgresql", "sqlite"'
    )
