"""A view as the product plans it, computed inside the process.

The view's text is read by the product's reader; the statement over versions is the product's text;
the engine is SQLite. A view of the simulator is one node: a join of relations of whole numbers,
perhaps folded to groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from steadyview.algebra import Bag, Row
from steadyview.changes import RelationSchema
from steadyview.plans.aggregates import ArgumentTypes, Grouped, GroupedTypes
from steadyview.plans.draft import RelationInput
from steadyview.plans.fold import Fold
from steadyview.plans.links import Link, links
from steadyview.plans.moves import BEGINNING, CN, FOREVER, VERSION
from steadyview.plans.node import Node
from steadyview.plans.operator import Rendering, walk
from steadyview.plans.scan import Scan
from steadyview.plans.versions import COUNT, Logged, Reply, versions
from steadyview.simulation.sqlite_engine import Engine, SqliteDialect
from steadyview.views.parse import parse_view
from steadyview.views.plan import plan_view

State: TypeAlias = Mapping[Row, Row]
"""Of a view with groups, the sums of each by its key."""
Versions: TypeAlias = Sequence[Row]
"""Versions of a relation: the columns that are read, and `_n`, `_from`, `_to`."""


class Moved(NamedTuple):
    """What a window does to a view: the change of its rows at each cn, and the state after it."""

    changes: Mapping[int, Bag[Row]]
    state: State


@dataclass(frozen=True)
class ViewPlan:
    """The view's node. `reads`: the relation of each of its scans, by number."""

    node: Node
    reads: tuple[int, ...]

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """How its scans hang together."""
        return tuple(links(self.node.block))

    @cached_property
    def used(self) -> Mapping[int, tuple[int, ...]]:
        """Per relation, the columns that are read, by number."""
        used: dict[int, set[int]] = {}
        for operator in walk(self.node.block):
            if isinstance(operator, Scan):
                used.setdefault(self.reads[operator.number], set()).update(operator.used)
        return {relation: tuple(sorted(columns)) for relation, columns in used.items()}

    def table(self, relation: int, rows: Sequence[Row]) -> pa.Table:
        """Rows of a relation: the columns that are read."""
        columns = {f"c{c}": [row[c] for row in rows] for c in self.used[relation]}
        return pa.table({name: pa.array(v, pa.int64()) for name, v in columns.items()})

    def logged(self, relation: int, rows: Sequence[tuple[Row, int, int]]) -> Logged:
        """Changes of a relation: (row, count, cn)."""
        table = self.table(relation, [row for row, _, _ in rows])
        table = table.append_column(COUNT, pa.array([n for _, n, _ in rows], pa.int64()))
        return Logged(table.append_column(CN, pa.array([cn for *_, cn in rows], pa.int64())))

    def versions(
        self, relation: int, log: Logged, replies: Sequence[Reply], after: int, upto: int
    ) -> Versions:
        """The relation over the window."""
        names = [f"c{c}" for c in self.used[relation]]
        made = versions(names, log, replies, after, upto)
        return list(zip(*(column.to_pylist() for column in made.columns), strict=True))

    def first(self, rows: Sequence[Bag[Row]]) -> Moved:
        """The view's first state over whole relations, as a change at cn 0."""
        whole: dict[int, Versions] = {}
        for relation, columns in self.used.items():
            used = Bag((tuple([row[c] for c in columns]), count) for row, count in rows[relation])
            whole[relation] = [(*row, count, BEGINNING, FOREVER) for row, count in used]
        return self._moved(whole, {}, beginning=True)

    def moved(self, inputs: Mapping[int, Versions], state: State) -> Moved:
        """Over a window, from the versions of its relations and the state before it."""
        return self._moved(inputs, state, beginning=False)

    def _moved(self, inputs: Mapping[int, Versions], state: State, *, beginning: bool) -> Moved:
        engine, fold = _engine(), self.node.fold
        for relation, made in inputs.items():
            used = self.used[relation]
            engine.put(_name(f"v{relation}", used), [*(f"c{c}" for c in used), *VERSION], made)
        if fold is not None and not beginning:
            rows = [(*key, *sums) for key, sums in state.items()]
            engine.put(_name("s", fold.state_names), fold.state_names, rows)
        found = engine.rows(self._first_text if beginning else self._text)
        if fold is None:
            return _rows_moved(found)
        return _groups_moved(fold, found, None if beginning else state)

    @cached_property
    def _text(self) -> str:
        fold = self.node.fold
        state = None if fold is None else _name("s", fold.state_names)
        return self.node.statement(self._rendering(), state)

    @cached_property
    def _first_text(self) -> str:
        return self.node.statement(self._rendering(), beginning=True)

    def _rendering(self) -> Rendering:
        names = {n: _name(f"v{r}", self.used[r]) for n, r in enumerate(self.reads)}
        return Rendering(SqliteDialect(), names)


def view_plan(view: str, schemas: Sequence[RelationSchema]) -> ViewPlan:
    """The plan of a view over relations of whole numbers, which are numbered as they stand."""
    (draft,) = plan_view(parse_view("v", view), schemas, {}, {}).drafts
    number = {schema.name: i for i, schema in enumerate(schemas)}
    read = [i.relation for i in draft.inputs if isinstance(i, RelationInput)]
    fold = None if draft.grouped is None else draft.grouped.fold(_whole_numbers(draft.grouped))
    return ViewPlan(Node(draft.block, fold), tuple(number[relation] for relation in read))


def _whole_numbers(grouped: Grouped) -> GroupedTypes:
    """Their types, as Spark has them."""
    arguments = tuple(ArgumentTypes("BIGINT", "BIGINT", "DOUBLE") for _ in grouped.arguments)
    return GroupedTypes(tuple("BIGINT" for _ in grouped.keys), arguments)


@lru_cache(maxsize=1)
def _engine() -> Engine:
    return Engine()


def _name(what: str, columns: Sequence[object]) -> str:
    """Tables of other columns have other names, and stay as they are made."""
    return f"{what}_{'_'.join(map(str, columns))}"


def _rows_moved(found: Sequence[tuple[Any, ...]]) -> Moved:
    changes: dict[int, list[tuple[Row, int]]] = {}
    for *row, cn, count in found:
        changes.setdefault(cn, []).append((tuple(row), count))
    return Moved({cn: Bag(changes[cn]) for cn in sorted(changes)}, {})


def _groups_moved(fold: Fold, found: Sequence[tuple[Any, ...]], state: State | None) -> Moved:
    """Every row found is a key at a cn: the sums' steps, what was shown, and what is now.

    Without a state nothing was shown, not even the one row of an aggregate without keys.
    """
    after = dict(state or {})
    changes: dict[int, list[tuple[Row, int]]] = {}
    keys, sums, width = len(fold.keys), len(fold.all_sums), 1 + len(fold.outputs)
    for row in found:
        key, cn, rest = row[:keys], row[keys], row[keys + 1 :]
        steps, old, new = rest[:sums], rest[sums : sums + width], rest[sums + width : -2]
        before = after.get(key, (0,) * sums)
        after[key] = tuple([a + b for a, b in zip(before, steps, strict=True)])
        gone = [] if state is None else [(old[1:], -old[0])]
        changes.setdefault(cn, []).extend([*gone, (new[1:], new[0])])
    kept = {key: sums_ for key, sums_ in after.items() if not keys or any(sums_)}
    return Moved({cn: Bag(changes[cn]) for cn in sorted(changes)}, kept)
