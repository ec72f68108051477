"""One history made ready: the order of its commits, the view at every vector, the distinct states.

A repeated state is no state: `states` are without consecutive duplicates, and `numbers[i]` is the
place in the history of the first of those that `states[i]` stands for.
"""

from __future__ import annotations

from steadyview.algebra import Bag, Row
from steadyview.checking.budget import Budget
from steadyview.checking.commit_order import CommitOrder
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
        source_of = {name: number[relation.source] for name, relation in relations.items()}
        touched = [
            tuple(sorted({source_of[name] for name, change in t.changes.items() if len(change)}))
            for t in history.transactions
        ]
        self.order = CommitOrder(touched, len(self.sources))
        self.views = ViewStates(self._view, history, source_of, self.order.commits, self.budget)
        self.states: list[State] = []
        self.numbers: list[int] = []
        self._add_states()

    def _add_states(self) -> None:
        for number, bag in enumerate(self.history.states):
            state = self._read(bag)
            if not self.states or state != self.states[-1]:
                self.states.append(state)
                self.numbers.append(number)

    def _read(self, bag: Bag[Row]) -> State:
        shown = self._view.shown
        if any(column.tell for column in shown):
            return dict(Bag((told(shown, row), count) for row, count in bag))
        return dict(bag)
