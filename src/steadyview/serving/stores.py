"""Which families of stores there are, and how one is opened: nothing else names a family."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steadyview.serving.contract import RecordStore

DEFAULT_SCHEMA = "steadyview"


def open_store(name: str, settings: Mapping[str, Any]) -> RecordStore:
    """The store with these settings, as the project file has them; it is not connected to yet."""
    if settings["type"] == "sqlite":
        from steadyview.serving.sqlite import SqliteStore

        return SqliteStore(name, Path(settings["path"]))
    if settings["type"] == "postgresql":
        from steadyview.serving.postgresql import PostgresStore

        return PostgresStore(name, settings["url"], settings.get("schema", DEFAULT_SCHEMA))
    from steadyview.serving.redis import RedisStore

    return RedisStore(name, settings["url"], settings.get("prefix", DEFAULT_SCHEMA))
