"""The relation algebra on in-memory bags: small, exact, without I/O.

For the tests of the algorithms and for the simulator. A row is the tuple of *all* columns of its
relation, by number; a joined row binds one such tuple to every occurrence number.

Assumes: the log holds at least the rows that can matter to a batch (a, b]: every reflected one with
cn > a, every unreflected one with cn <= b. More of it changes nothing. What is captured but not
admitted has cn `FOREVER`.
Invariant of a partner: with base = answer - sum of the reflected log rows, each log row is a step
of its count at its cn, reflected or not. So at every t in [a, b] the versions are R_v(t), for all
rows that the answer covers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from steadyview.algebra import Bag, Row, Step, Value, Versions
from steadyview.changes import RelationName
from steadyview.maintenance.relation_algebra import RelationAlgebra
from steadyview.views.definition import Occurrence
from steadyview.views.interpret import column_equality, interpret

Bound: TypeAlias = tuple[Row, ...]
"""The row bound to each occurrence, by number; an empty row where none is bound yet."""
Tagged: TypeAlias = tuple[int, Bound]
"""A joined row and the cn whose change it is."""


@dataclass(frozen=True)
class LogRow:
    """One logged row image; `reflected`: the source's answers show its transaction."""

    row: Row
    count: int
    cn: int
    reflected: bool


@dataclass(frozen=True)
class Batch:
    """The transactions k with after < k <= upto."""

    after: int
    upto: int

    def __contains__(self, cn: int) -> bool:
        return self.after < cn <= self.upto


@dataclass(frozen=True)
class Answer:
    """Rows of one relation in the state that its source showed."""

    rows: Bag[Row]


@dataclass(frozen=True)
class Partner:
    """One occurrence's filtered relation over the times of the batch."""

    versions: Versions[Row]


@dataclass(frozen=True)
class Partial:
    """Joined rows, each tagged with the cn whose change it is."""

    rows: Bag[Tagged]


@dataclass(frozen=True)
class Keys:
    """Values of one column, none of them NULL."""

    values: frozenset[Value]


Handle: TypeAlias = Answer | Partner | Partial | Keys


class BagAlgebra(RelationAlgebra[Handle]):
    """The algebra over one batch and one frozen answer state per source."""

    def __init__(self, batch: Batch, log: Mapping[RelationName, Sequence[LogRow]]) -> None:
        self._batch = batch
        self._log = log

    def seed(self, occurrence: Occurrence, conditions: Sequence[str]) -> Partial:
        """The batch's own log rows of the occurrence, filtered, each tagged with its cn."""
        tagged = Bag(
            ((log.cn, _bind((), occurrence.number, log.row)), log.count)
            for log in self.log(occurrence)
            if log.cn in self._batch and _passes(occurrence, log.row)
        )
        return Partial(tagged.where(lambda tag: _holds(conditions, tag[1])))

    def partner(self, occurrence: Occurrence, answer: Handle) -> Partner:
        """Answer and log rows, consolidated into versions."""
        assert isinstance(answer, Answer)
        log = [entry for entry in self.log(occurrence) if _passes(occurrence, entry.row)]
        shown = Bag((entry.row, entry.count) for entry in log if entry.reflected)
        base = answer.rows.where(lambda row: _passes(occurrence, row)) - shown
        return Partner(Versions(base, (Step(e.row, e.count, e.cn) for e in log)))

    def keys(self, handles: Sequence[Handle], occurrence: Occurrence, column: int) -> Keys:
        """Exactly the values of the column in the handles, at any time, without NULL."""
        rows = (row for handle in handles for row in _rows_at(handle, occurrence.number))
        return Keys(frozenset(row[column] for row in rows if row[column] is not None))

    def extend(
        self,
        partial: Handle,
        occurrence: Occurrence,
        partner: Handle,
        conditions: Sequence[str],
        *,
        own: bool,
    ) -> Partial:
        """Hash join on the plain equalities; every condition is then evaluated as SQL."""
        assert isinstance(partial, Partial)
        assert isinstance(partner, Partner)
        index = _Index(partner.versions, occurrence.number, conditions)
        joined: list[tuple[Tagged, int]] = []
        for (cn, bound), count in partial.rows:
            time = cn if own else cn - 1
            for row in index.candidates(bound):
                level = partner.versions.count(row, time)
                both = _bind(bound, occurrence.number, row)
                if level and _holds(conditions, both):
                    joined.append(((cn, both), count * level))
        return Partial(Bag(joined))

    def add(self, partials: Sequence[Handle]) -> Partial:
        """The bag sum; of none, the empty bag."""
        return Partial(Bag(pair for partial in partials for pair in _tagged(partial)))

    def log(self, occurrence: Occurrence) -> Sequence[LogRow]:
        """The log rows of the occurrence's relation that take part in this batch."""
        return self._log.get(occurrence.relation.name, ())


class _Index:
    """The rows of a partner by the values that its plain equalities compare.

    Python finds equal what SQL's `=` finds equal, and NULL is looked up under no value: candidates
    are a superset of the matches.
    """

    def __init__(self, versions: Versions[Row], number: int, conditions: Sequence[str]) -> None:
        equalities = [e for e in map(column_equality, conditions) if e is not None]
        sides = [(a, b) if b[0] == number else (b, a) for a, b in equalities]
        sides = [(there, here) for there, here in sides if here[0] == number != there[0]]
        self._there = [there for there, _ in sides]
        self._rows: dict[Row, list[Row]] = defaultdict(list)
        for row in versions.rows():
            key = tuple(row[column] for _, (_, column) in sides)
            if None not in key:
                self._rows[key].append(row)

    def candidates(self, bound: Bound) -> Iterable[Row]:
        key = tuple(bound[occurrence][column] for occurrence, column in self._there)
        return self._rows.get(key, ())


def _bind(bound: Bound, number: int, row: Row) -> Bound:
    padded = bound + ((),) * (number + 1 - len(bound))
    return (*padded[:number], row, *padded[number + 1 :])


def _holds(conditions: Sequence[str], bound: Bound) -> bool:
    """Whether every condition is true; unknown is not."""
    return all(interpret(condition)(bound, {}) is True for condition in conditions)


def _passes(occurrence: Occurrence, row: Row) -> bool:
    if occurrence.filter is None:
        return True
    return _holds([occurrence.filter], _bind((), occurrence.number, row))


def _rows_at(handle: Handle, number: int) -> Iterable[Row]:
    """The rows that a handle holds at one occurrence."""
    if isinstance(handle, Partner):
        return handle.versions.rows()
    return (bound[number] for (_, bound), _ in _tagged(handle))


def _tagged(handle: Handle) -> Bag[Tagged]:
    assert isinstance(handle, Partial)
    return handle.rows
