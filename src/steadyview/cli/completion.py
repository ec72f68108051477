"""Names that the shell completes: views, sources and subscriptions, from files alone.

Claim: nothing is connected to, neither Spark nor the SQL parser is loaded, and whatever is wrong
with the project completes to nothing, without a word: the shell would print it into the command.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

import typer

from steadyview.runtime.project import FILE_NAME, view_paths

_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_CREATED = re.compile(
    r"\s*CREATE\s+(?:OR\s+REPLACE\s+)?MATERIALIZED\s+VIEW\s+(?:IF\s+NOT\s+EXISTS\s+)?"
    r"(?:`([^`]+)`|(\w+))",
    re.IGNORECASE,
)


def view_names(context: typer.Context, incomplete: str) -> list[str]:
    """The project's views that the word may become; those named before are left out."""
    given = context.params.get("views") or ()
    names = {_view_name(path) for path in view_paths(_folder(context) / "views")}
    return _matching(names.difference(given), incomplete)


def source_names(context: typer.Context, incomplete: str) -> list[str]:
    """The project's sources that the word may become."""
    try:
        text = (_folder(context) / FILE_NAME).read_text(encoding="utf-8")
        sources = tomllib.loads(text).get("sources", {})
    except (OSError, ValueError):
        return []
    return _matching(sources if isinstance(sources, dict) else (), incomplete)


def subscription_names(context: typer.Context, incomplete: str) -> list[str]:
    """The warehouse's subscriptions that the word may become: it has a lock file of each."""
    folder = _folder(context)
    try:
        text = (folder / FILE_NAME).read_text(encoding="utf-8")
        warehouse = tomllib.loads(text).get("project", {}).get("warehouse", "warehouse")
        names = [path.name for path in (folder / warehouse / "subscriptions").iterdir()]
    except (OSError, ValueError, AttributeError, TypeError):
        return []
    return _matching(names, incomplete)


def _folder(context: typer.Context) -> Path:
    return Path(context.params.get("project") or ".").expanduser()


def _view_name(path: Path) -> str:
    try:
        created = _CREATED.match(_COMMENT.sub(" ", path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        created = None
    return (created[1] or created[2]) if created else path.stem


def _matching(names: Iterable[str], incomplete: str) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))
