"""Why a level does not hold: the first state that breaks it, and in what way.

kind           the state ...                                                          of level
different      is not the view over the final rows                                    convergent
skipped        shows a transaction of a source but not one that came before it        weak
part           shows a part of a transaction of one source                            weak
nowhere        is the view over no vector                                             weak
beginning      is the first and not the view over the initial rows                    strong
half           shows a global transaction at some of its sources only                 strong
backwards      lacks a transaction that a state before it showed                      strong
unshown        takes in transactions after which a reader would have seen more        complete
unknown        was not decided: the search was cut off                                any

`skipped`, `part`, `backwards` and `unshown` name one explanation of possibly many; that the state
breaks the level is proved by the search, whatever the explanation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from steadyview.checking.boxes import Boxes
from steadyview.checking.case import Case
from steadyview.checking.commit_order import Vector
from steadyview.checking.finding import Finding
from steadyview.checking.near_misses import near_misses, nearest
from steadyview.checking.visible import State, untold


@dataclass(frozen=True)
class Break:
    """`state` is the state's number in the history; `facts` depend on the kind (`to_dict`)."""

    level: str
    kind: str
    state: int | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {"level": self.level, "kind": self.kind, "state": self.state, **self.facts}


def broken(case: Case, level: str, findings: Mapping[str, Finding]) -> Break:
    """The break of a level that fails while the one below it holds."""
    number = findings[level].broken
    kind, facts = _WAYS[level](case, number, findings)
    return Break(level, kind, case.numbers[number], facts)


def difference(expected: State, found: State) -> dict[str, Any]:
    """What a state lacks and has beyond what was expected, as counted rows."""
    rows = {*expected, *found}
    counts = {row: found.get(row, 0) - expected.get(row, 0) for row in rows}
    listed = sorted([(list(untold(row)), n) for row, n in counts.items() if n], key=repr)
    return {
        "missing": [{"row": row, "count": -n} for row, n in listed if n < 0],
        "extra": [{"row": row, "count": n} for row, n in listed if n > 0],
    }


def _convergent(case: Case, number: int, _: Any) -> tuple[str, dict[str, Any]]:
    expected = case.views.at(case.order.everything)
    return "different", difference(expected, case.states[number])


def _weak(
    case: Case, number: int, findings: Mapping[str, Finding]
) -> tuple[str, dict[str, Any]]:
    state, known = case.states[number], findings["weak"].vectors
    near = known[-1] if known else case.order.nothing
    for miss in near_misses(case, near):
        if miss.state == state:
            return miss.kind, {**miss.facts, "vector": case.named(miss.vector)}
    vector = nearest(case, near, state)
    facts = difference(case.views.at(vector), state)
    return "nowhere", {"nearest": case.named(vector), **facts}


def _strong(
    case: Case, number: int, findings: Mapping[str, Finding]
) -> tuple[str, dict[str, Any]]:
    chain, state = findings["strong"].vectors, case.states[number]
    if number == 0:
        return "beginning", difference(case.views.at(case.order.nothing), state)
    before = chain[-1]
    boxes = Boxes(case, state, whole=True)
    below = next(boxes.highest(case.order.nothing, before), None)
    vector = below or boxes.near(before, also_below=True)
    if vector is None:
        return "half", _half(case, findings["weak"].vectors[number])
    source = next(x for x, seen in enumerate(vector) if seen < before[x])
    return "backwards", {
        "transaction": case.transaction(source, vector[source]),
        "source": case.sources[source],
        "before": case.numbers[number - 1],
        "vector": case.named(vector),
        "vector_before": case.named(before),
    }


def _half(case: Case, vector: Vector) -> dict[str, Any]:
    number, seen, unseen = case.order.half_seen(vector)
    return {
        "transaction": case.history.transactions[number].id,
        "seen_at": [case.sources[x] for x in seen],
        "unseen_at": [case.sources[x] for x in unseen],
        "vector": case.named(vector),
    }


def _complete(
    case: Case, number: int, findings: Mapping[str, Finding]
) -> tuple[str, dict[str, Any]]:
    reached = findings["complete"].vectors
    if len(reached) > number:
        after, before, upto = number, reached[number], case.order.everything
    else:
        chain = findings["strong"].vectors
        after, before, upto = number - 1, chain[number - 1], chain[number]
    return "unshown", {
        "after": case.numbers[after],
        "transactions": case.ids(case.order.between(before, upto)),
        "would_show": _instead(case, before, upto, (case.states[after], case.states[number])),
        "vector_before": case.named(before),
        "vector": case.named(upto),
    }


def _instead(
    case: Case, low: Vector, high: Vector, known: Sequence[State]
) -> list[dict[str, Any]]:
    """What single transactions from `low` towards `high` would have shown that was not shown."""
    shown = []
    for number, after in case.order.steps(low):
        state = case.views.at(after)
        if all(map(int.__le__, after, high)) and state not in known:
            change = difference(case.views.at(low), state)
            shown.append({"transaction": case.history.transactions[number].id, **change})
    return shown


_WAYS = {"convergent": _convergent, "weak": _weak, "strong": _strong, "complete": _complete}
