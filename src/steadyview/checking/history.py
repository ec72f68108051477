"""A history: what the sources did, and which states a view showed.

Assumes: `transactions` are listed in an order that agrees with every source's commit order; a
transaction that changed relations of several sources is global; no relation ever holds a row a
negative number of times. A change that cancels out within its transaction is no change.
`states` are the view's states in order, the initial one first, equal rows summed.

Values are int, Decimal, str, bool or None, each column of one kind. `from_json` checks all of
this; who builds a history in Python sees to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from steadyview.algebra import Bag, Row


@dataclass(frozen=True)
class Relation:
    """A relation of one source, its columns' names, and its rows before the first transaction."""

    source: str
    columns: tuple[str, ...]
    rows: Bag[Row] = field(default_factory=Bag)


@dataclass(frozen=True)
class Transaction:
    """What one transaction changed, by relation."""

    id: str
    changes: Mapping[str, Bag[Row]]


@dataclass(frozen=True)
class History:
    """The view's SQL, its relations by the names the SQL calls them, transactions, states."""

    view: str
    relations: Mapping[str, Relation]
    transactions: Sequence[Transaction]
    states: Sequence[Bag[Row]]

    def __post_init__(self) -> None:
        object.__setattr__(self, "transactions", tuple(self.transactions))
        object.__setattr__(self, "states", tuple(self.states))

    @property
    def columns(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The relations' names and their columns' names: what the view's SQL is read against."""
        return tuple([(name, relation.columns) for name, relation in self.relations.items()])

    @staticmethod
    def from_json(text: str) -> History:
        """The history in a file's text; ConfigError says where it is malformed."""
        from steadyview.checking.history_file import read

        return read(text)

    def to_json(self) -> str:
        """The file's text; `from_json` reads an equal history."""
        from steadyview.checking.history_file import write

        return write(self)
