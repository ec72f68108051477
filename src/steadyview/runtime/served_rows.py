"""Which views are served from which store, as catalog and project say: no plan, no Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from steadyview.catalog import Catalog, ViewRow
from steadyview.errors import ConfigError
from steadyview.plans.plan import HIDDEN
from steadyview.runtime.project import ProjectConfig
from steadyview.serving.contract import RecordStore
from steadyview.serving.layout import Columns, RecordLayout
from steadyview.serving.stores import open_store

WAY = "change table"
"""How records are kept up: by post-images of what the view's change table says."""
LEVEL = "strong per record; several records as of one cn"


def store_of(row: ViewRow) -> str | None:
    """The store that the view is served from."""
    found = _read(row.definition)
    return None if found is None else found[0]


def layout_of(row: ViewRow) -> RecordLayout:
    """What its records look like there; of a view that is served."""
    found = _read(row.definition)
    assert found is not None
    return RecordLayout(row.name, found[1], found[2])


@lru_cache(maxsize=1_000)
def _read(definition: str) -> tuple[str, Columns, tuple[str, ...]] | None:
    """Store, columns and key."""
    found = json.loads(definition or "{}")
    served = found.get("serve")
    if served is None:
        return None
    columns = tuple((name, type_) for name, type_ in found["columns"])
    return str(served["store"]), columns, tuple(served["key"])


def served_views(catalog: Catalog, store: str | None = None) -> list[ViewRow]:
    """The views that are to be served, from one store or from any, by name."""
    rows = [r for r in catalog.views.all() if not r.name.startswith(HIDDEN)]
    found = [(row, store_of(row)) for row in rows if row.state != "refused"]
    return [row for row, its in found if its is not None and store in (None, its)]


def served_row(catalog: Catalog, view: str) -> tuple[ViewRow, str]:
    """The view of that name and its store; ConfigError if it is not to be served."""
    rows = served_views(catalog)
    for row in rows:
        if row.name.lower() == view.lower():
            return row, str(store_of(row))
    raise ConfigError(
        f'view "{view}" is not served from a store',
        detail=f"views that are: {', '.join(row.name for row in rows) or 'none'}",
        hint="name a store in its file: TBLPROPERTIES ('steadyview.serve' = '...')",
    )


def settings_of(project: ProjectConfig, store: str) -> Mapping[str, Any]:
    """A store's settings; ConfigError if there is none of that name, or one lacks its value."""
    if store not in project.stores:
        raise ConfigError(
            f'there is no store "{store}"',
            detail=f"stores of this project: {', '.join(project.stores) or 'none'}",
            hint=f"describe it in steadyview.toml: [stores.{store}]",
        )
    if store in project.unready_stores:
        raise project.unready_stores[store]
    return project.stores[store]


def open_project_store(project: ProjectConfig, name: str) -> RecordStore:
    """A store of the project; ConfigError as by `settings_of`."""
    return open_store(name, settings_of(project, name))
