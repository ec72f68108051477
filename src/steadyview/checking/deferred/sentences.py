"""A witness as a sentence that a person can check against the history."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from steadyview.checking.deferred.names import (
    ACROSS_VIEWS,
    IN_A_VIEW,
    LOST,
    REAL_TIME,
    REDUNDANT,
    REORDERED,
)

Facts = Mapping[str, Any]


def sentence(name: str, facts: Facts) -> str:
    """What was seen that the property forbids."""
    return _SENTENCES[name](facts)


def _lost(f: Facts) -> str:
    return (
        f"{f['x']} committed at {f['committed']}, and {_rows(f['rows'])} of it "
        f"{_is(f['rows'])} not in {f['view']} after its last step, to {f['target']}"
    )


def _redundant(f: Facts) -> str:
    by = " and ".join(map(str, f["by"]))
    return f"row {f['row']} was applied to {f['view']} {f['times']} times, by its steps to {by}"


def _in_a_view(f: Facts) -> str:
    return (
        f"the step of {f['view']} to {f['target']} applied {_rows(f['applied'])} of {f['x']} "
        f"but not {_rows(f['left'])}"
    )


def _across_views(f: Facts) -> str:
    return (
        f"{f['x']} has rows of both, and {f['view']} shows it at {f['target']} "
        f"but {f['other_view']} does not at {f['other_target']}"
    )


def _reordered(f: Facts) -> str:
    only = f"only {f['y']} was in {f['view']} after its step to {f['target']}"
    if f["because"] == "ended":
        first = f"{f['x']} ended at {f['end']} before {f['y']} began at {f['begin']}"
    elif f["because"] == "item":
        first = f"{f['x']} and {f['y']} both changed {f['item']}, {f['x']} first"
        first += f" (it committed at {f['committed']})"
    else:
        before, after = f["seq"]
        first = f"{f['x']} is commit {before} of {f['source']} and {f['y']} commit {after}"
    return f"{first}, and {only}"


def _real_time(f: Facts) -> str:
    step = f"the step of {f['view']} to {f['target']}"
    if f["x"] is None:
        return f"after {step} row {f['row']} is there, of no transaction that committed"
    whose = f"{f['x']} committed at {f['committed']}, and after {step} its row {f['row']}"
    return f"{whose} {_there(f['times'])}"


_SENTENCES: Final[Mapping[str, Callable[[Facts], str]]] = {
    LOST: _lost,
    REDUNDANT: _redundant,
    IN_A_VIEW: _in_a_view,
    ACROSS_VIEWS: _across_views,
    REORDERED: _reordered,
    REAL_TIME: _real_time,
}


def _rows(rows: Sequence[int]) -> str:
    return f"row{'s' if len(rows) > 1 else ''} {', '.join(map(str, rows))}"


def _is(rows: Sequence[int]) -> str:
    return "are" if len(rows) > 1 else "is"


def _there(times: int) -> str:
    return {0: "is not there", 1: "is there already"}.get(times, f"is there {times} times")
