"""The exported surface: what users may rely on, pinned."""

from __future__ import annotations

import inspect
import subprocess
import sys

import steadyview
from steadyview.runtime.warehouse import View, Warehouse


def public(thing: object) -> set[str]:
    return {name for name in dir(thing) if not name.startswith("_")}


def test_the_package_exports_these_names() -> None:
    assert set(steadyview.__all__) == {
        "DefiniteError",
        "SteadyviewError",
        "TransientError",
        "__version__",
        "open",
    }


def test_a_warehouse_has_these_methods() -> None:
    assert public(Warehouse) == {
        "acknowledge",
        "answered",
        "check",
        "close",
        "compare",
        "compress",
        "drop",
        "drop_subscription",
        "explain",
        "graph",
        "query",
        "query_at",
        "rebuild",
        "rebuild_served",
        "recorded",
        "recording",
        "refresh",
        "remove_source",
        "rename",
        "reset_subscription",
        "resnapshot",
        "routes",
        "run",
        "run_once",
        "served",
        "sources",
        "status",
        "store",
        "store_of",
        "subscribe",
        "subscriptions",
        "told",
        "verify",
        "verify_served",
        "view",
        "views",
    }


def test_a_view_has_these_methods() -> None:
    assert public(View) == {"changes", "history", "read"}


def test_signatures_are_these() -> None:
    def parameters(function: object) -> list[str]:
        return list(inspect.signature(function).parameters)  # type: ignore[arg-type]

    assert parameters(steadyview.open) == ["project", "spark"]
    assert parameters(Warehouse.query) == ["self", "sql", "at", "max_staleness", "route"]
    assert parameters(Warehouse.verify) == ["self", "views", "at", "nodes"]
    assert parameters(View.read) == ["self", "at"]
    assert parameters(View.history) == ["self", "limit"]


def test_looking_at_the_package_does_not_load_spark() -> None:
    code = "import sys, steadyview; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
