"""Joined rows as flat tuples: where each column stands, and SQL over it.

A view that speaks of plain columns only keeps no more than those columns; one that needs
`views.interpret` keeps whole rows, since interpreted SQL finds columns by their numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter

from steadyview.algebra import Row, Value
from steadyview.views.definition import Definition
from steadyview.views.interpret import interpret

_COLUMN = re.compile(r"t(\d+)\.c(\d+)")


def plain_column(sql: str) -> tuple[int, int] | None:
    """(occurrence, column), if the SQL is a plain column.

    >>> plain_column("t1.c0"), plain_column("t1.c0 + 1")
    ((1, 0), None)
    """
    found = _COLUMN.fullmatch(sql)
    return (int(found[1]), int(found[2])) if found else None


def row_of(positions: Sequence[int]) -> Callable[[Row], Row]:
    """The values at these positions, as a row.

    >>> row_of([2])(("a", "b", "c")), row_of([])(("a",))
    (('c',), ())
    """
    if len(positions) > 1:
        return itemgetter(*positions)
    if not positions:
        return lambda _: ()
    position = positions[0]
    return lambda row: (row[position],)


def key_of(positions: Sequence[int]) -> Callable[[Row], Value]:
    """The values at these positions, as something to look up: a single one is not wrapped."""
    return itemgetter(*positions)


class Layout:
    """Where the columns of every occurrence stand once all are joined in `order`."""

    def __init__(self, definition: Definition, order: Sequence[int]) -> None:
        self.order = order
        whole = not all(plain_column(sql) for sql in _expressions(definition))
        self.kept = [
            tuple(range(len(o.relation.columns))) if whole else o.columns
            for o in definition.occurrences
        ]
        self._starts: dict[int, int] = {}
        width = 0
        for number in order:
            self._starts[number] = width
            width += len(self.kept[number])

    def position(self, occurrence: int, column: int) -> int:
        """Where the column stands in a joined row."""
        return self._starts[occurrence] + self.kept[occurrence].index(column)

    def values(self, sqls: Sequence[str]) -> Callable[[Row], Row]:
        """The expressions' values, of a joined row in which all they speak of is bound."""
        columns = [plain_column(sql) for sql in sqls]
        positions = [self.position(*column) for column in columns if column]
        if len(positions) == len(sqls):
            return row_of(positions)
        evaluate = [interpret(sql) for sql in sqls]
        rows_in = self._rows_in()
        return lambda flat: tuple([e(rows, {}) for rows in [rows_in(flat)] for e in evaluate])

    def condition(self, sqls: Sequence[str]) -> Callable[[Row], bool]:
        """Whether all conditions are true; unknown is not."""
        evaluate = [interpret(sql) for sql in sqls]
        rows_in = self._rows_in()

        def holds(flat: Row) -> bool:
            rows = rows_in(flat)
            return all(e(rows, {}) is True for e in evaluate)

        return holds

    def _rows_in(self) -> Callable[[Row], list[Row]]:
        slices = [
            slice(self._starts[number], self._starts[number] + len(columns))
            for number, columns in enumerate(self.kept)
        ]
        return lambda flat: [flat[part] for part in slices]


def _expressions(definition: Definition) -> Iterable[str]:
    """Everything that is evaluated on joined rows, apart from equalities."""
    yield from (residual.sql for residual in definition.residuals)
    if definition.grouping is None:
        yield from (output.sql for output in definition.outputs)
    else:
        yield from definition.grouping.keys
        yield from (argument.sql for argument in definition.grouping.arguments)
