"""The error for a state that no history gives: a row that is there fewer than zero times.

It means that the captured changes are not what happened at a source, or that a file of the
warehouse is not what was written. No reader ever gets such a state with the row left out.
"""

from __future__ import annotations

from steadyview.engine.carried import literal, raising
from steadyview.errors import ViewStopped
from steadyview.warehouse.view_store import Shape


def below_zero(view: str, shape: Shape, cn: int) -> str:
    """A SQL expression that raises it, over the stored row of a view delta that is at hand."""
    return raising(_error(view, f"at or before cn {cn}"), _named(shape))


def below_zero_error(view: str, cn: int, row: str) -> ViewStopped:
    """The same where the row is at hand itself."""
    error = _error(view, f"at or before cn {cn}")
    return ViewStopped(
        error.message, detail=str(error.detail).replace("{row}", row), hint=error.hint
    )


def _error(view: str, when: str) -> ViewStopped:
    return ViewStopped(
        f'view "{view}" would hold a row fewer than zero times',
        detail=f"row {{row}}, {when}: a change at a source passed the capture by, or a file of the "
        "warehouse is damaged",
        hint=f"run: steadyview view rebuild {view}",
    )


def _named(shape: Shape) -> str:
    """The row as people know it."""
    fields = [f"{literal(name)}, c{i}" for i, (name, _) in enumerate(shape.visible)]
    return f"NAMED_STRUCT({', '.join(fields)})"
