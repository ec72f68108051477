"""How much a node keeps, as its tables' logs tell: rows and bytes. No file of rows is opened."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from steadyview.catalog import ViewRow
from steadyview.delta import FileEntry
from steadyview.errors import SteadyviewError
from steadyview.runtime.kept import recalled
from steadyview.warehouse.view_store import ViewStore


def sizes(root: Path, row: ViewRow) -> dict[str, Any] | None:
    """What a node's tables hold; None where it has none yet, or they cannot be read.

    `rows`: its rows at its base's cn; `changes`: those of its view delta; `state`: of its sums, as
    stored: base and steps.
    """
    if row.cn is None:
        return None
    store = ViewStore(root, row, recalled(row).shape)
    try:
        found = {
            "rows": _total(store.base.files(row.base_version)),
            "changes": _total(store.delta.files(row.delta_version)),
        }
        if store.shape.state:
            found["state"] = _total([*store.state.files(), *store.steps.files()])
    except SteadyviewError:
        return None
    return found


def _total(files: Sequence[FileEntry]) -> dict[str, int]:
    return {"rows": sum(f.rows for f in files), "bytes": sum(f.size for f in files)}
