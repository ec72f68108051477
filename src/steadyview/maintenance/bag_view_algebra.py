"""The view algebra on in-memory bags: small, exact, without I/O. For the simulator and for tests.

A row is the tuple of all columns of its relation; a joined row binds such a tuple to each bound
position and None to the others. What a step has to compare is worked out once per view and shape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

from steadyview.algebra import Bag, Row
from steadyview.views.definition import Definition
from steadyview.views.interpret import ColumnOf, Evaluate, column_equality, interpret
from steadyview.views.join_tree import JoinTree

Bound: TypeAlias = tuple[Row | None, ...]


class JoinedRows(NamedTuple):
    """Joined rows and the positions they bind."""

    bound: frozenset[int]
    rows: Bag[Bound]


Handle: TypeAlias = Bag[Row] | JoinedRows


class JoinStep(NamedTuple):
    """How a position is joined: known columns equal columns here, and what else must hold."""

    there: tuple[ColumnOf, ...]
    here: tuple[int, ...]
    rest: tuple[Evaluate, ...]


@dataclass(frozen=True)
class Compiled:
    """A view's conditions, outputs and keys, prepared for evaluation; shared by many worlds.

    `keys`: per position, (column, output) pairs: where the view shows the key of that position.
    """

    definition: Definition
    tree: JoinTree
    keys: tuple[tuple[tuple[int, int], ...], ...] = ()

    @cached_property
    def size(self) -> int:
        """How many positions there are."""
        return len(self.definition.occurrences)

    @cached_property
    def outputs(self) -> Callable[[Bound], Row]:
        """A joined row as a view row."""
        columns = [_plain_column(output.sql) for output in self.definition.outputs]
        if all(columns):
            places = [column for column in columns if column]
            return lambda bound: tuple([bound[p][c] for p, c in places])  # type: ignore[index]
        parts = [interpret(output.sql) for output in self.definition.outputs]
        return lambda bound: tuple([part(bound, {}) for part in parts])  # type: ignore[arg-type]

    @cached_property
    def _steps(self) -> dict[tuple[frozenset[int], int], JoinStep]:
        return {}

    def step(self, bound: frozenset[int], position: int) -> JoinStep:
        """How to join `position` with rows that bind `bound`; nothing bound: how to begin."""
        found = self._steps.get((bound, position))
        if found is None:
            found = self._steps[bound, position] = self._prepared(bound, position)
        return found

    def between(self, left: frozenset[int], right: frozenset[int]) -> tuple[Evaluate, ...]:
        """The conditions that neither of two joined bags could apply alone."""
        both = left | right
        return tuple(
            interpret(sql)
            for sql, needs in self.tree.conditions
            if needs <= both and not needs <= left and not needs <= right
        )

    def _prepared(self, bound: frozenset[int], position: int) -> JoinStep:
        there, here, rest = [], [], []
        own = self.definition.occurrences[position].filter
        if own is not None:
            rest.append(interpret(own))
        after = bound | {position}
        for sql, needs in self.tree.conditions:
            if not needs <= after or (bound and needs <= bound):
                continue
            pair = _across(column_equality(sql), position)
            if pair is None:
                rest.append(interpret(sql))
            else:
                there.append(pair[0])
                here.append(pair[1])
        return JoinStep(tuple(there), tuple(here), tuple(rest))


class BagViewAlgebra:
    """`ViewAlgebra` (promises there) for one compiled view."""

    def __init__(self, view: Compiled) -> None:
        self.view = view

    def seed(self, position: int, rows: Handle) -> JoinedRows:
        """Bind one position, with its own filter and the view's constant conditions."""
        assert isinstance(rows, Bag)
        before, after = (None,) * position, (None,) * (self.view.size - position - 1)
        rest = self.view.step(frozenset(), position).rest
        bound = Bag(
            (joined, count)
            for row, count in rows
            if _holds(rest, joined := (*before, row, *after))
        )
        return JoinedRows(frozenset({position}), bound)

    def join(self, joined: Handle, position: int, rows: Handle) -> JoinedRows:
        """Hash join on the plain equalities; NULL is equal to nothing."""
        assert isinstance(joined, JoinedRows)
        assert isinstance(rows, Bag)
        after = joined.bound | {position}
        if not len(joined.rows) or not len(rows):
            return JoinedRows(after, Bag())
        there, here, rest = self.view.step(joined.bound, position)
        index: dict[Row, list[tuple[Row, int]]] = {}
        for row, count in rows:
            key = tuple([row[column] for column in here])
            if None not in key:
                index.setdefault(key, []).append((row, count))
        found: list[tuple[Bound, int]] = []
        for bound, count in joined.rows:
            key = tuple([bound[p][c] for p, c in there])  # type: ignore[index]
            for row, times in index.get(key, ()):
                both = (*bound[:position], row, *bound[position + 1 :])
                if _holds(rest, both):
                    found.append((both, count * times))
        return JoinedRows(after, Bag(found))

    def merge(self, left: Handle, right: Handle, position: int) -> JoinedRows:
        """Join on the row of one position, NULLs alike."""
        assert isinstance(left, JoinedRows)
        assert isinstance(right, JoinedRows)
        rest = self.view.between(left.bound, right.bound)
        index: dict[Row | None, list[tuple[Bound, int]]] = {}
        for bound, count in right.rows:
            index.setdefault(bound[position], []).append((bound, count))
        found: list[tuple[Bound, int]] = []
        for bound, count in left.rows:
            for other, times in index.get(bound[position], ()):
                both = tuple([a if a is not None else b for a, b in zip(bound, other, strict=True)])
                if _holds(rest, both):
                    found.append((both, count * times))
        return JoinedRows(left.bound | right.bound, Bag(found))

    def project(self, joined: Handle) -> Bag[Row]:
        """The view's columns."""
        assert isinstance(joined, JoinedRows)
        return joined.rows.map(self.view.outputs)

    def add(self, handles: Sequence[Handle]) -> Handle:
        """Joined bags that are empty may bind anything."""
        first, *others = handles
        if isinstance(first, Bag):
            for other in others:
                assert isinstance(other, Bag)
                first += other
            return first
        rows = first.rows
        for other in others:
            assert isinstance(other, JoinedRows)
            rows += other.rows
        return JoinedRows(first.bound, rows)

    def negate(self, handle: Handle) -> Handle:
        """Every count with the other sign."""
        return -handle if isinstance(handle, Bag) else JoinedRows(handle.bound, -handle.rows)

    def plus(self, handle: Handle) -> Handle:
        """The rows with counts above zero."""
        if isinstance(handle, Bag):
            return handle.plus()
        return JoinedRows(handle.bound, handle.rows.plus())

    def minus(self, handle: Handle) -> Handle:
        """The rows with counts below zero, counted positively."""
        return self.plus(self.negate(handle))

    def distinct(self, handle: Handle) -> Handle:
        """Every row once."""
        if isinstance(handle, Bag):
            return handle.distinct()
        return JoinedRows(handle.bound, handle.rows.distinct())

    def without(self, rows: Handle, others: Handle) -> Bag[Row]:
        """The rows that are not among the others."""
        assert isinstance(rows, Bag)
        assert isinstance(others, Bag)
        return rows.where(lambda row: not others.count(row))

    def key_delete(self, view: Handle, position: int, rows: Handle) -> Bag[Row]:
        """View rows with another key at the position."""
        assert isinstance(view, Bag)
        assert isinstance(rows, Bag)
        columns, outputs = zip(*self.view.keys[position], strict=True)
        gone = {tuple([row[c] for c in columns]) for row, _ in rows}
        return view.where(lambda row: tuple([row[o] for o in outputs]) not in gone)

    def row_delete(self, joined: Handle, position: int, rows: Handle) -> JoinedRows:
        """Joined rows with another row at the position."""
        assert isinstance(joined, JoinedRows)
        assert isinstance(rows, Bag)
        kept = joined.rows.where(lambda bound: not rows.count(bound[position] or ()))
        return JoinedRows(joined.bound, kept)

    def is_empty(self, handle: Handle) -> bool:
        """Whether there is no row."""
        return not len(handle if isinstance(handle, Bag) else handle.rows)

    def materialized(self, handle: Handle) -> Handle:
        """It is."""
        return handle


def _holds(conditions: tuple[Evaluate, ...], bound: Bound) -> bool:
    # asked for every joined row, and far more often than not there is none
    return not conditions or all(c(bound, {}) is True for c in conditions)  # type: ignore[arg-type]


def _across(pair: tuple[ColumnOf, ColumnOf] | None, position: int) -> tuple[ColumnOf, int] | None:
    """(known column, column here) of an equality that reaches from elsewhere to the position."""
    if pair is None:
        return None
    one, other = pair
    if one[0] == position != other[0]:
        return other, one[1]
    if other[0] == position != one[0]:
        return one, other[1]
    return None


def _plain_column(sql: str) -> ColumnOf | None:
    plain = sql.startswith("t") and sql.count(".") == 1
    pair = column_equality(f"{sql} = {sql}") if plain else None
    return pair[0] if pair else None
