"""Judging a history: the highest level of consistency that its states reached.

The definitions are those of Zhuge, Garcia-Molina and Wiener (PDIS 1996), section 4, made exact:

- *convergent*: the last state is the view over the final source states.
- *weak*: and every state is the view over some vector of source prefixes (`weak`).
- *strong*: and all of them along one chain of whole vectors, from the initial rows (`strong`).
- *complete*: and the chain takes one transaction at a time, and every state of it that a reader can
  tell apart is shown (`complete`).

Stricter than the paper in one point: all transactions of one source are ordered, also those that
do not conflict. Order between transactions of different sources is free.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Final, TypeAlias

from steadyview.checking.budget import OutOfBudget
from steadyview.checking.case import Case
from steadyview.checking.commit_order import Vector
from steadyview.checking.complete import complete
from steadyview.checking.finding import FAILS, HOLDS, UNKNOWN, Finding
from steadyview.checking.history import History
from steadyview.checking.strong import strong
from steadyview.checking.verdict import Verdict
from steadyview.checking.weak import weak
from steadyview.errors import DefiniteError

BUDGET: Final = 20_000_000
"""How many rows the search for one level may join (see `budget`): seconds, not minutes."""


Search: TypeAlias = Callable[[Case, Sequence[Vector]], Finding]
"""From a case, and vectors of its first states that the level above found, to a finding."""
_SEARCHES: Final[tuple[tuple[str, Search], ...]] = (
    ("complete", complete),
    ("strong", strong),
    ("weak", weak),
)


def judge(history: History, budget: int = BUDGET) -> Verdict:
    """The verdict. Beyond the budget a level is `unknown`, never guessed.

    DefiniteError (ViewRefused among them) if the view cannot be evaluated in memory.
    """
    if not history.states:
        raise DefiniteError("a history has at least the view's initial state")
    case = Case(history)
    last = len(case.states) - 1
    if case.views.at(case.order.everything) != case.states[last]:
        return Verdict(case, {"convergent": Finding(FAILS, broken=last)})
    findings = {"convergent": Finding(HOLDS, [case.order.everything])}
    # From above: what holds at one level holds at all below it.
    begun: Sequence[Vector] = ()
    for level, search in _SEARCHES:
        found = findings[level] = _searched(case, search, begun, budget)
        if found.answer == HOLDS:
            break
        begun = found.vectors or begun
    return Verdict(case, findings)


def _searched(case: Case, search: Search, begun: Sequence[Vector], budget: int) -> Finding:
    case.budget.left = budget
    try:
        return search(case, begun)
    except OutOfBudget:
        return Finding(UNKNOWN)
    finally:
        case.budget.left = inf
