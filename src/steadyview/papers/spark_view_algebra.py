"""The view algebra of the papers' algorithms on Spark (`maintenance.view_algebra`, promises there).

Rows of a relation have the columns `c{i}` that the view uses at any of its positions; joined rows
have one struct column `t{p}` for each bound position, so that the view's fragments, which speak of
`t{p}.c{i}`, are evaluated as they stand. View rows are those of a view delta: `c{i}`. Counts are
signed, and rows that cancel out may stand side by side until a bag is
computed.

Assumes: the parts of `add` are of one kind. Not promised: that two handles over the same inputs
are computed only once; `materialized` sees to that where an algorithm wants it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from steadyview.changes import RelationName, arrow_type
from steadyview.engine.bags import matching
from steadyview.engine.window_input import ARROW_LIMIT
from steadyview.papers.view_handles import (
    COUNT,
    FEW,
    Form,
    Handle,
    Storage,
    Stored,
    made,
    nothing,
    stored_rows,
)
from steadyview.views.definition import Definition, Occurrence
from steadyview.views.join_tree import JoinTree

_EQUALITY = re.compile(r"t(\d+)\.c(\d+) = t(\d+)\.c(\d+)")
DEEP = 8
"""A text that would nest deeper is computed first: plans grow faster than what they save."""


class SparkViewAlgebra:
    """`ViewAlgebra` for one view; `keys` as in `maintenance.fitting.keys_shown`."""

    def __init__(
        self,
        definition: Definition,
        tree: JoinTree,
        types: Sequence[str],
        storage: Storage,
        keys: Sequence[Sequence[tuple[int, int]]] = (),
    ) -> None:
        """`types` are those of the view's columns."""
        self._definition, self._tree = definition, tree
        self._storage = storage
        self._keys = keys
        self.columns = used_columns(definition.occurrences)
        self._relations = {o.relation.name: o.relation for o in definition.occurrences}
        self._view = Form(tuple(f"c{i}" for i in range(len(types))), tuple(types))

    # --- what enters -------------------------------------------------------------------------

    def rows(self, relation: RelationName, table: pa.Table, sign: int | None = None) -> Handle:
        """Rows at hand: columns `c{i}` in number order and `_count`."""
        return self._storage.leaf(self._rows_form(relation), table, sign)

    def answer(self, relation: RelationName, stored: Stored) -> Handle:
        """Rows that a source showed, one copy each."""
        return self._storage.found(self._rows_form(relation), stored, 1)

    def view_rows(self, sql: str, rows: int) -> Handle:
        """View rows by a query over their stored columns; about so many."""
        return Handle(self._view, lambda: sql, weight=rows)

    def key_values(self, joined: Handle, position: int, column: int) -> pa.Array:
        """At least the distinct values of a bound position's column, none of them NULL.

        Read from the files behind the handle: a superset where it is not computed yet, no job.
        """
        type_ = self._arrow_type(position, column)
        chunks = [c.cast(type_) for s in _values(joined, position, f"c{column}") for c in s]
        return pc.unique(pa.chunked_array(chunks, type_)).drop_null()

    # --- the algebra -------------------------------------------------------------------------

    def seed(self, position: int, rows: Handle) -> Handle:
        """The position's own filter and constant conditions are applied."""
        form = self._joined_form({position})
        if rows.known_empty:
            return nothing(form)
        conditions = [*self._filter(position), *self._tree.start_conditions(position)]
        where = f" WHERE {_and(conditions)}" if conditions else ""
        return self._made(
            form,
            lambda: f"SELECT * FROM ({self._as_struct(position, rows)}){where}",
            [rows],
            sign=rows.sign,
            certain=rows.certain and not conditions,
        )

    def join(self, joined: Handle, position: int, rows: Handle) -> Handle:
        """One more struct column; equalities are found by Spark and joined by hash."""
        bound = joined.form.bound
        form = self._joined_form(bound | {position})
        if joined.known_empty or rows.known_empty or self._disjoint(joined, position, rows):
            return nothing(form)
        on = _and([*self._newly(bound, form.bound), *self._filter(position)])

        def text() -> str:
            right = self._as_struct(position, rows)
            return _product(form, joined.text(), right, on)

        return self._made(form, text, [joined, rows], sign=_times(joined, rows))

    def merge(self, left: Handle, right: Handle, position: int) -> Handle:
        """Joined on all columns of the position, NULLs alike."""
        form = self._joined_form(left.form.bound | right.form.bound)
        if left.known_empty or right.known_empty:
            return nothing(form)
        relation = self._definition.occurrences[position].relation.name
        same = [f"a.t{position}.c{i} <=> b.t{position}.c{i}" for i in self.columns[relation]]
        between = [
            sql
            for sql, needs in self._tree.conditions
            if needs <= form.bound
            and not needs <= left.form.bound
            and not needs <= right.form.bound
        ]

        def text() -> str:
            # b's own positions only: a condition speaks of the common one without saying whose
            others = sorted(right.form.bound - left.form.bound)
            inner = _product(
                form, left.text(), right.text(), _and(same), [*sorted(left.form.bound)], others
            )
            return f"SELECT * FROM ({inner}) WHERE {_and(between)}"

        return self._made(form, text, [left, right], sign=_times(left, right))

    def project(self, joined: Handle) -> Handle:
        """The view's columns."""
        if joined.known_empty:
            return nothing(self._view)
        outputs = "".join(f"{o.sql} AS c{i}, " for i, o in enumerate(self._definition.outputs))
        names = ", ".join(self._view.names)

        def text() -> str:
            rows = f"SELECT {outputs}{COUNT} AS _n FROM ({joined.text()})"
            total = f"CAST(SUM(_n) AS BIGINT) AS {COUNT}"
            return f"SELECT {names}, {total} FROM ({rows}) GROUP BY {names} HAVING SUM(_n) <> 0"

        return self._made(self._view, text, [joined], sign=joined.sign)

    def add(self, handles: Sequence[Handle]) -> Handle:
        """Side by side; those known to be empty are left out."""
        parts = [h for h in handles if not h.known_empty]
        if len(parts) < 2:
            return parts[0] if parts else handles[0]
        form = parts[0].form
        signs = {h.sign for h in parts}
        sign = signs.pop() if len(signs) == 1 else None
        return self._made(
            form,
            lambda: " UNION ALL ".join(f"SELECT {form.listed} FROM ({h.text()})" for h in parts),
            parts,
            sign=sign,
            certain=sign is not None and any(h.certain for h in parts),
        )

    def negate(self, handle: Handle) -> Handle:
        """Every measure with the other sign."""
        if handle.known_empty:
            return handle
        form = handle.form
        listed = ", ".join([*form.names, *(f"-{n} AS {n}" for n, _ in form.measures)])
        return self._made(
            form,
            lambda: f"SELECT {listed} FROM ({handle.text()})",
            [handle],
            sign=None if handle.sign is None else -handle.sign,
            certain=handle.certain,
        )

    def plus(self, handle: Handle) -> Handle:
        """Computed, and split by sign."""
        if handle.sign is None:
            self.materialized(handle)
        if handle.sign is not None:
            return handle if handle.sign > 0 else nothing(handle.form)
        return self._side(handle, "> 0", COUNT, 1)

    def minus(self, handle: Handle) -> Handle:
        """The other side, counted positively."""
        if handle.sign is None:
            self.materialized(handle)
        if handle.sign is not None:
            return self.negate(handle) if handle.sign < 0 else nothing(handle.form)
        return self._side(handle, "< 0", f"-{COUNT}", 1)

    def distinct(self, handle: Handle) -> Handle:
        """Once each, whatever the count."""
        if handle.known_empty:
            return handle
        form = handle.form
        names = ", ".join(form.names)
        return self._made(
            form,
            lambda: f"SELECT {names}, 1L AS {COUNT} FROM ({form.net(handle.text())})",
            [handle],
            sign=1,
            certain=handle.known_filled,
        )

    def without(self, rows: Handle, others: Handle) -> Handle:
        """An anti-join on all columns."""
        same = matching("a", "b", rows.form.names)
        return self._anti(rows, others, same)

    def key_delete(self, view: Handle, position: int, rows: Handle) -> Handle:
        """An anti-join on the columns that show the position's key."""
        same = " AND ".join(f"a.c{output} <=> b.c{c}" for c, output in self._keys[position])
        return self._anti(view, rows, same)

    def row_delete(self, joined: Handle, position: int, rows: Handle) -> Handle:
        """An anti-join on all columns of the position."""
        same = " AND ".join(f"a.t{position}.{c} <=> b.{c}" for c in rows.form.names)
        return self._anti(joined, rows, same)

    def is_empty(self, handle: Handle) -> bool:
        """Computed if that is the only way to know."""
        if handle.known_filled:
            return False
        if not handle.known_empty and handle.stored is None:
            self._storage.compute(handle)
        return handle.stored is None or not handle.stored.rows

    def materialized(self, handle: Handle) -> Handle:
        """The same handle, now stored; equal rows are one."""
        if not handle.known_empty and handle.stored is None:
            self._storage.compute(handle)
        return handle

    # --- parts -------------------------------------------------------------------------------

    def _made(
        self,
        form: Form,
        text: Callable[[], str],
        inputs: Sequence[Handle],
        *,
        sign: int | None = None,
        certain: bool = False,
    ) -> Handle:
        handle = made(form, text, inputs, sign=sign, certain=certain)
        return self.materialized(handle) if handle.depth > DEEP else handle

    def _side(self, handle: Handle, side: str, count: str, sign: int) -> Handle:
        """Rows of one sign of a stored handle; small ones are split here."""
        form = handle.form
        if handle.weight > ARROW_LIMIT:
            names = "".join(f"{n}, " for n in form.names)
            text = f"SELECT {names}{count} AS {COUNT} FROM ({handle.text()}) WHERE {COUNT} {side}"
            return self._made(form, lambda: text, [handle], sign=sign)
        table = stored_rows(handle)
        counts = table[COUNT]
        kept = pc.greater(counts, 0) if side == "> 0" else pc.less(counts, 0)
        at = table.column_names.index(COUNT)
        table = table.set_column(at, COUNT, pc.abs(counts)).filter(kept)
        return self._storage.leaf(form, table, sign)

    def _anti(self, rows: Handle, others: Handle, same: str) -> Handle:
        """The rows that match none of the others; a row that cancelled out is none."""
        if rows.known_empty or others.known_empty:
            return rows

        def text() -> str:
            known = others.sign is not None or others.stored is not None
            there = others.text() if known else others.form.net(others.text())
            listed = rows.form.listed
            return f"SELECT {listed} FROM ({rows.text()}) a LEFT ANTI JOIN ({there}) b ON {same}"

        return self._made(rows.form, text, [rows, others], sign=rows.sign)

    def _disjoint(self, joined: Handle, position: int, rows: Handle) -> bool:
        """Whether an equality of the join has no value in common: most lookups find nothing.

        Seen in the files behind few rows; saves a job each time.
        """
        if joined.weight + rows.weight > FEW:
            return False
        bound = joined.form.bound
        for sql in self._newly(bound, bound | {position}):
            sides = _EQUALITY.fullmatch(sql)
            if sides is None:
                continue
            places = [(int(sides[1]), int(sides[2])), (int(sides[3]), int(sides[4]))]
            (u, here), (_, there) = sorted(places, key=lambda place: place[0] == position)
            types = {self._arrow_type(u, here), self._arrow_type(position, there)}
            if len(types) == 1 and not pa.types.is_floating(next(iter(types))):
                known = self.key_values(joined, u, here)
                if not pc.any(pc.is_in(known, self.key_values(rows, position, there))).as_py():
                    return True
        return False

    def _as_struct(self, position: int, rows: Handle) -> str:
        """Rows of a relation as joined rows of one position."""
        fields = ", ".join(f"'{name}', {name}" for name in rows.form.names)
        return f"SELECT NAMED_STRUCT({fields}) AS t{position}, {COUNT} FROM ({rows.text()})"

    def _filter(self, position: int) -> list[str]:
        own = self._definition.occurrences[position].filter
        return [own] if own else []

    def _newly(self, before: frozenset[int], after: frozenset[int]) -> list[str]:
        """The conditions that can be told now and could not before."""
        return [
            sql for sql, needs in self._tree.conditions if needs <= after and not needs <= before
        ]

    def _rows_form(self, relation: RelationName) -> Form:
        columns = self.columns[relation]
        schema = self._relations[relation]
        return Form(
            tuple(f"c{i}" for i in columns), tuple(schema.columns[i].type for i in columns)
        )

    def _joined_form(self, bound: Iterable[int]) -> Form:
        positions = sorted(bound)
        return Form(
            tuple(f"t{p}" for p in positions),
            tuple(self._struct_type(p) for p in positions),
            bound=frozenset(positions),
        )

    def _struct_type(self, position: int) -> str:
        rows = self._rows_form(self._definition.occurrences[position].relation.name)
        fields = ", ".join(f"{n}: {t}" for n, t in zip(rows.names, rows.types, strict=True))
        return f"STRUCT<{fields}>"

    def _arrow_type(self, position: int, column: int) -> pa.DataType:
        return arrow_type(self._definition.occurrences[position].relation.columns[column].type)


def used_columns(occurrences: Iterable[Occurrence]) -> Mapping[RelationName, tuple[int, ...]]:
    """Per relation, the columns used at any position (at least one: rows must count)."""
    used: dict[RelationName, set[int]] = {}
    for occurrence in occurrences:
        used.setdefault(occurrence.relation.name, set()).update(occurrence.columns)
    return {name: tuple(sorted(columns or {0})) for name, columns in used.items()}


def _values(handle: Handle, position: int, column: str) -> Iterator[list[pa.Array]]:
    """The chunks of a column in the stored inputs that hold a position's rows."""
    if handle.known_empty:
        return
    if handle.stored is not None:
        table = stored_rows(handle)
        bound = bool(handle.form.bound)
        rows = pc.struct_field(table[f"t{position}"], column) if bound else table[column]
        yield rows.chunks
        return
    binding = [h for h in handle.inputs if position in h.form.bound]
    for other in binding or [h for h in handle.inputs if not h.form.bound]:
        yield from _values(other, position, column)


def _product(
    form: Form,
    left: str,
    right: str,
    on: str,
    of_left: Sequence[int] = (),
    of_right: Sequence[int] = (),
) -> str:
    """The joined rows of two queries; columns that both have are named by their side."""
    sides = {**dict.fromkeys(of_left, "a."), **dict.fromkeys(of_right, "b.")}
    listed = ", ".join(f"{sides.get(p, '')}t{p}" for p in sorted(form.bound))
    counts = f"a.{COUNT} * b.{COUNT} AS {COUNT}"
    return f"SELECT {listed}, {counts} FROM ({left}) a JOIN ({right}) b ON {on}"


def _times(one: Handle, other: Handle) -> int | None:
    return None if one.sign is None or other.sign is None else one.sign * other.sign


def _and(conditions: Sequence[str]) -> str:
    return " AND ".join(f"({c})" for c in conditions) or "TRUE"
