"""A verdict's witness in one or two sentences that a person can check against the history."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from steadyview.checking.breaks import Break
from steadyview.checking.json_text import written

_MOST_ROWS = 3

_HELD = {
    "none": "the history does not even converge",
    "convergent": "the last state is the view over the final rows",
    "weak": "every state is the view over some vector of source prefixes",
    "strong": "the states follow one chain of source states",
    "complete": "the states are those after each transaction, one by one, and nothing else",
}


def sentence(level: str, why_not_more: Break | None) -> str:
    """What holds, and what keeps the next level from holding."""
    held = _HELD[level]
    if why_not_more is None:
        return held
    reason = _REASONS[why_not_more.kind](why_not_more.state, why_not_more.facts, why_not_more.level)
    return f"{held}; {reason}" if level != "none" else reason


def _different(state: int | None, facts: Mapping[str, Any], _: str) -> str:
    return f"state {state}, the last, is not the view over the final rows: {_rows(facts)}"


def _skipped(state: int | None, facts: Mapping[str, Any], _: str) -> str:
    source = facts["source"]
    return (
        f"state {state} shows {facts['shows']} of {source} but not {facts['lacks']} of {source}, "
        "which came before it"
    )


def _part(state: int | None, facts: Mapping[str, Any], _: str) -> str:
    lacking = [f"{change['relation']} {written(change['row'])}" for change in facts["lacks"]]
    return (
        f"state {state} shows a part of {facts['transaction']} of {facts['source']} only: "
        f"not its change of {_listed(lacking)}"
    )


def _nowhere(state: int | None, facts: Mapping[str, Any], _: str) -> str:
    return (
        f"state {state} is the view over no vector of source prefixes: "
        f"compared with the view after {_vector(facts['nearest'])} {_rows(facts)}"
    )


def _beginning(state: int | None, facts: Mapping[str, Any], _: str) -> str:
    return f"state {state}, the first, is not the view over the initial rows: {_rows(facts)}"


def _half(state: int | None, facts: Mapping[str, Any], _: str) -> str:
    seen, unseen = (" and ".join(facts[key]) for key in ("seen_at", "unseen_at"))
    return f"state {state} shows {facts['transaction']} at {seen} but not at {unseen}"


def _backwards(state: int | None, facts: Mapping[str, Any], _: str) -> str:
    return (
        f"state {state} does not show {facts['transaction']} of {facts['source']}, "
        f"which state {facts['before']} before it shows"
    )


def _unshown(state: int | None, facts: Mapping[str, Any], _: str) -> str:
    taken = _listed(facts["transactions"])
    if facts["after"] == state:
        begin = f"after state {state}, the last, come {taken}"
    else:
        begin = f"state {state} takes in {taken} since state {facts['after']}"
    if facts["would_show"]:
        first = facts["would_show"][0]
        moves = (("extra", "come"), ("missing", "go"))
        seen = [f"{_some_rows(first[key])} {move}" for key, move in moves if first[key]]
        alone = f"after {first['transaction']} alone a reader would have seen"
        return f"{begin}: {alone} {' and '.join(seen)}"
    return f"{begin}: no order of the transactions shows these states and nothing else"


def _unknown(_: int | None, facts: Mapping[str, Any], level: str) -> str:
    return f"whether it is {level} is unknown: the search was cut off"


def _rows(facts: Mapping[str, Any]) -> str:
    parts = [
        f"it {verb} {_some_rows(facts[key])}{behind}"
        for verb, key, behind in (("lacks", "missing", ""), ("shows", "extra", " too many"))
        if facts[key]
    ]
    return " and ".join(parts)


def _some_rows(entries: Sequence[Mapping[str, Any]]) -> str:
    return _listed([_counted(entry) for entry in entries])


def _counted(entry: Mapping[str, Any]) -> str:
    times = f" {entry['count']} times" if entry["count"] != 1 else ""
    return written(entry["row"]) + times


def _listed(items: Sequence[str]) -> str:
    more = [f"{len(items) - _MOST_ROWS} more"] if len(items) > _MOST_ROWS else []
    shown = [*items[:_MOST_ROWS], *more]
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)


def _vector(vector: Mapping[str, int]) -> str:
    commits = {source: "commit" if seen == 1 else "commits" for source, seen in vector.items()}
    return _listed([f"{vector[source]} {word} of {source}" for source, word in commits.items()])


_REASONS: Mapping[str, Callable[[int | None, Mapping[str, Any], str], str]] = {
    "different": _different,
    "skipped": _skipped,
    "part": _part,
    "nowhere": _nowhere,
    "beginning": _beginning,
    "half": _half,
    "backwards": _backwards,
    "unshown": _unshown,
    "unknown": _unknown,
}
