"""The error for a state that no history gives: a row that is there fewer than zero times.

It means that the captured changes are not what happened at a source, or that a file of the
warehouse is not what was written. No reader ever gets such a state with the row left out.
"""

from __future__ import annotations

from steadyview.engine.failures import literal, raising
from steadyview.errors import ViewStopped
from steadyview.warehouse.view_store import Shape


def below_zero(view: str, shape: Shape, cn: int) -> str:
    """A SQL expression that raises it, over the stored row of a view delta that is at hand."""
    return raising(_error(view, f"at or before cn {cn}"), _named(shape, []))


def below_zero_at(view: str, shape: Shape) -> str:
    """The same where the row knows its `_cn`."""
    return raising(_error(view, "at that cn"), _named(shape, ["'cn', _cn"]))


def _error(view: str, when: str) -> ViewStopped:
    return ViewStopped(
        f'view "{view}" would hold a row fewer than zero times',
        detail=f"row {{row}}, {when}: a change at a source passed the capture by, or a file of the "
        "warehouse is damaged",
        hint=f"run: steadyview view rebuild {view}",
    )


def _named(shape: Shape, more: list[str]) -> str:
    """The row as people know it: a plain view's columns, an aggregate view's group."""
    if shape.states:
        names = _key_names(shape)
    else:
        names = {f"o{i}": name for i, (name, _) in enumerate(shape.visible)}
    fields = [f"{literal(name)}, {column}" for column, name in names.items()]
    listed = ", ".join([*fields, *more]) or "'group', 'all'"
    return f"NAMED_STRUCT({listed})"


def _key_names(shape: Shape) -> dict[str, str]:
    """Every group key by the name of an output that shows it, or by its own."""
    assert shape.definition is not None
    shown = {o.sql: o.name for o in reversed(shape.definition.outputs)}
    keys = [n for n, _ in shape.states if n.startswith("_g")]
    return {key: shown.get(key, f"group key {i}") for i, key in enumerate(keys, 1)}
