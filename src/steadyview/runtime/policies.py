"""When a view's changes are propagated, and when they are shown: paper 002, section 1.1.

    policy      when a transaction commits      at a refresh
    immediate   propagated and shown            -
    ipda        propagated                      shown up to the target
    dpda        captured                        propagated up to the target, and shown
    snapshot    captured                        recomputed at the target, and shown

So a policy answers two questions, and nothing else in the product asks which one it is. What is
hidden has none of its own: it goes with the first of those that read it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

from steadyview.catalog import ViewRow
from steadyview.runtime.kept import algorithm_of, inputs_of, is_hidden, policy_of
from steadyview.runtime.planning import VERSIONS


class Policy(Enum):
    """How a row goes on."""

    IMMEDIATE = "immediate"
    IPDA = "ipda"
    DPDA = "dpda"
    SNAPSHOT = "snapshot"

    @property
    def propagates(self) -> bool:
        """Whether every batch takes it along."""
        return self in (Policy.IMMEDIATE, Policy.IPDA)

    @property
    def shows(self) -> bool:
        """Whether what is propagated is shown at once."""
        return self is Policy.IMMEDIATE


def policies(rows: Iterable[ViewRow]) -> dict[int, Policy]:
    """Of every row, by its id.

    A hidden node is propagated, and published, as soon as a view needs it that is propagated at
    once; one that only deferred views need waits for them.
    """
    known = {row.id: row for row in rows}
    found = {i: Policy(policy_of(row)) for i, row in known.items() if not is_hidden(row)}
    left = [i for i in known if i not in found]
    at_once = [i for i, policy in found.items() if policy.propagates]
    while at_once:
        below = (i for i in inputs_of(known[at_once.pop()]).values() if i in left)
        for i in list(below):
            left.remove(i)
            found[i] = Policy.IMMEDIATE
            at_once.append(i)
    return found | dict.fromkeys(left, Policy.DPDA)


class Forward(Enum):
    """How the rows of a view at a later moment can be had, for a query alone."""

    FOLLOWS = "follows"
    CARRIED = "carried"
    RECOMPUTED = "recomputed"


def forwards(rows: Iterable[ViewRow]) -> dict[int, Forward]:
    """Of every row, by its id: it comes there by itself, by its changes, or not by what is kept.

    A view over deferred ones is at most where they are shown: its own changes are not computed
    beyond that, for they would be shown.
    """
    known = {row.id: row for row in rows}
    policy = policies(known.values())
    found: dict[int, Forward] = {}

    def of(i: int) -> Forward:
        if i not in found:
            found[i] = _forward(known[i], policy[i], [of(j) for j in _read(known, i)])
        return found[i]

    for i in known:
        of(i)
    return found


def _read(known: Mapping[int, ViewRow], i: int) -> list[int]:
    return [j for j in inputs_of(known[i]).values() if j in known]


def _forward(row: ViewRow, policy: Policy, inputs: Sequence[Forward]) -> Forward:
    by_changes = row.kind == "incremental" and algorithm_of(row) == VERSIONS
    if not by_changes or Forward.RECOMPUTED in inputs:
        return Forward.RECOMPUTED
    if not policy.shows:
        return Forward.CARRIED
    return Forward.RECOMPUTED if Forward.CARRIED in inputs else Forward.FOLLOWS
