"""One history made ready: the order of its commits, the view at every vector, the distinct states.

A repeated state is no state: `states` are without consecutive duplicates, and `numbers[i]` is the
place in the history of the first of those that `states[i]` stands for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from steadyview.algebra import Bag, Row
from steadyview.checking.budget import Budget
from steadyview.checking.commit_order import CommitOrder, Vector
from steadyview.checking.compiled_view import compiled
from steadyview.checking.history import History
from steadyview.checking.view_states import ViewStates
from steadyview.checking.visible import State, told


class Case:
    """What every level is judged by."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.budget = Budget()
        self._view = compiled(history.view, history.columns)
        relations = history.relations
        self.sources = tuple(dict.fromkeys([r.source for r in relations.values()]))
        number = {source: n for n, source in enumerate(self.sources)}
        self.source_of = {name: number[relation.source] for name, relation in relations.items()}
        touched = [self._touched(transaction.changes) for transaction in history.transactions]
        self.order = CommitOrder(touched, len(self.sources))
        self.views = ViewStates(
            self._view, history, self.source_of, self.order.commits, self.budget
        )
        self.states: list[State] = []
        self.numbers: list[int] = []
        self._add_states()

    def _touched(self, changes: Mapping[str, Bag[Row]]) -> tuple[int, ...]:
        """The numbers of the sources that these changes were made at."""
        if len(changes) == 1:
            ((name, change),) = changes.items()
            return (self.source_of[name],) if len(change) else ()
        return tuple(sorted({self.source_of[name] for name, bag in changes.items() if len(bag)}))

    def named(self, vector: Vector) -> dict[str, int]:
        """The vector with its sources' names."""
        return dict(zip(self.sources, vector, strict=True))

    def ids(self, numbers: Iterable[int]) -> list[str]:
        """What the transactions with these numbers are called."""
        return [self.history.transactions[number].id for number in numbers]

    def transaction(self, source: int, place: int) -> str:
        """What the transaction is called that is number `place` of the source's commits."""
        return self.history.transactions[self.order.commits[source][place]].id

    def _add_states(self) -> None:
        for number, bag in enumerate(self.history.states):
            state = self._read(bag)
            if not self.states or state != self.states[-1]:
                self.states.append(state)
                self.numbers.append(number)

    def _read(self, bag: Bag[Row]) -> State:
        if not self._view.calculates:
            return dict(bag)
        return dict(Bag((told(self._view.shown, row), count) for row, count in bag))
