"""What happens to an algorithm, and what it wants done.

Events in: an update arrived, an answer arrived, time for a periodic step (`ticked`). Actions out:
ask a source, install a change of the view. Data are opaque handles H of a `ViewAlgebra`.

Assumed of whoever delivers them (Zhuge et al., PDIS 1996, section 3.3):
- messages of one source, updates and answers alike, arrive in the order in which they were sent;
- a source evaluates an ask atomically, in the state of that moment.
So an answer reflects exactly the updates of its source that arrived before it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from steadyview.changes import RelationName

H = TypeVar("H")


@dataclass(frozen=True, slots=True)
class Change(Generic[H]):
    """Rows inserted into a relation (`inserted`) or deleted from it; counts are above zero."""

    relation: RelationName
    rows: H
    inserted: bool


@dataclass(frozen=True, slots=True)
class Update(Generic[H]):
    """One message of a source: a transaction, or one source's part of a global one.

    `number` counts arrivals at the warehouse from 1. `changes` are in the order of execution.
    """

    number: int
    source: str
    transaction: str
    changes: tuple[Change[H], ...]
    parts: int = 1


@dataclass(frozen=True, slots=True)
class Part(Generic[H]):
    """A join to be continued: `known` rows, then each step's position.

    A step with rows joins these, a step without joins the base relation of that position. The whole
    part is evaluated in one state of the source.
    """

    known: H
    steps: tuple[tuple[int, H | None], ...]


@dataclass(frozen=True, slots=True)
class Ask(Generic[H]):
    """One query message. Its answer holds one handle per part."""

    query: int
    source: str
    parts: tuple[Part[H], ...]


@dataclass(frozen=True, slots=True)
class Read:
    """Read whole relations: the answer holds the rows of each position, all in one state."""

    query: int
    source: str
    positions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Install(Generic[H]):
    """Change the view's rows by the signed bag `change`, as one transaction.

    If `whole`, every update numbered 1..`upto` was handled and no other: where the algorithm keeps
    its promise, the state after it is the view over these. Otherwise it is a state between: in the
    middle of an update, or of different moments at different sources.
    """

    change: H
    upto: int
    whole: bool = True


Action: TypeAlias = Ask[H] | Read | Install[H]


class Algorithm(ABC, Generic[H]):
    """A maintenance algorithm over one view: a state machine without I/O, clock or dice (law 2)."""

    @abstractmethod
    def received(self, update: Update[H]) -> Sequence[Action[H]]:
        """An update arrived."""

    @abstractmethod
    def answered(self, query: int, answer: Sequence[H]) -> Sequence[Action[H]]:
        """The answer of an ask or read arrived."""

    def ticked(self) -> Sequence[Action[H]]:
        """A period is over: act on what was collected. Only periodic algorithms care."""
        return []
