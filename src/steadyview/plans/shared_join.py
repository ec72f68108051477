"""Several nodes over one join, in one statement.

    rows    the steps of the join's versions, each once for every member: its keys, its arguments
    steps   sums per member, key and cn
    levels  running sums per member and key, over the state of all members

Members differ in keys, sums and what they show, hence in the types of their columns. So the
statement has *slots*: one column serves all members at a time, each with a value of the slot's
type; a member that has no use for a slot leaves it NULL. The join is read and joined once with the
columns that any member uses. Its versions then end more often than some member needs; those steps
cancel.

Twenty aggregates over one join then cost little more than one: the join and the planning of a
statement are what is dear.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import Any

from steadyview.plans.constant import Constant
from steadyview.plans.filter import Filter
from steadyview.plans.fold import BELOW, ROWS, SAME, Fold, Sum
from steadyview.plans.inner_join import InnerJoin
from steadyview.plans.moves import BEGINNING, CHANGE, CN, FOREVER, FROM, TO, VERSION, ends, levels
from steadyview.plans.operator import Operator, Rendering, walk
from steadyview.plans.plan import FromNode, Origin, PlanNode
from steadyview.plans.project import Project
from steadyview.plans.renaming import renamed
from steadyview.plans.scan import Scan
from steadyview.plans.split_join import SplitJoin
from steadyview.plans.union_all import UnionAll

MEMBER = "_member"
_SHARED = (Scan, Constant, Filter, Project, UnionAll, InnerJoin, SplitJoin)


@dataclass(frozen=True)
class Slots:
    """Columns that the members share: `types[i]` is that of `{name}{i}`; `places[m]` are m's."""

    name: str
    types: tuple[str, ...]
    places: tuple[tuple[int, ...], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """All columns."""
        return tuple(f"{self.name}{i}" for i in range(len(self.types)))

    def of(self, member: int) -> tuple[str, ...]:
        """The columns of one member, in its own order."""
        return tuple(f"{self.name}{i}" for i in self.places[member])


@dataclass(frozen=True)
class SharedJoin:
    """Two or more nodes whose joins are equal but for the columns that they use."""

    members: tuple[PlanNode, ...]

    @cached_property
    def block(self) -> Operator:
        """The join, with every column that a member uses."""
        used: dict[int, set[int]] = {}
        for scan in (s for m in self.members for s in m.scans):
            used.setdefault(scan.number, set()).update(scan.used)
        columns = {n: tuple(sorted(c)) for n, c in used.items()}
        found: Operator = with_used(_join(self.members[0]), columns)
        return found

    @cached_property
    def keys(self) -> Slots:
        """The folds' keys; the columns of members without a fold."""
        return _slots("k", [[t for _, t in _keyed(m)] for m in self.members])

    @cached_property
    def sums(self) -> Slots:
        """The folds' sums; the first is everybody's: how many rows."""
        return _slots("x", [[s.type for s in _sums(m)] for m in self.members])

    @cached_property
    def outputs(self) -> Slots:
        """What folds show."""
        return _slots("o", [[t for _, t in m.columns] if m.fold else [] for m in self.members])

    @property
    def state_columns(self) -> tuple[tuple[str, str], ...]:
        """The columns of all members' state in one."""
        keys, sums = self.keys, self.sums
        return (
            (MEMBER, "INT"),
            *zip(keys.names, keys.types, strict=True),
            *zip(sums.names, sums.types, strict=True),
        )

    def statement(self, rendering: Rendering, state: str) -> str:
        """`_member`, the keys, `_cn`, the sums' steps; of folds what `Fold.statement` says.

        `state`: a FROM item with `state_columns`, the rows at the window's start.
        """
        steps = self._steps(rendering)
        keys = [MEMBER, *self.keys.names]
        sums = list(zip(self.sums.names, self.sums.types, strict=True))
        rows = rendering.part(levels(steps, state, keys, sums))
        kept = [*keys, CN]
        kept += [f"_{m}_{n}" for m in ("step", "before", "after") for n in self.sums.names]
        shown = [self._shown(m, s) for m, s in (("before", "old"), ("after", "new"))]
        rows = rendering.part(f"SELECT {', '.join(kept + shown[0] + shown[1])} FROM {rows}")
        names = ["times", *self.outputs.names]
        listed = [*keys, CN, *(f"_step_{n} AS {n}" for n in self.sums.names)]
        listed += [f"_{moment}_{n}" for moment in ("old", "new") for n in names]
        alike = (f"_old_{n} IS NOT DISTINCT FROM _new_{n}" for n in names)
        listed.append(f"{' AND '.join(alike)} AS {SAME}")
        listed.append(f"_before_x0 + _step_x0 < 0 AS {BELOW}")
        return rendering.statement(f"SELECT {', '.join(listed)} FROM {rows} WHERE {CN} > 0")

    def columns_of(self, member: int) -> dict[str, str]:
        """The columns of the statement that are one member's, with the member's own names."""
        node = self.members[member]
        found = dict(zip(self.keys.of(member), (n for n, _ in _keyed(node)), strict=True))
        found[CN] = CN
        sums = self.sums.of(member)
        if node.fold is None:
            return {**found, sums[0]: "_count"}
        found |= dict(zip(sums, (s.name for s in _sums(node)), strict=True))
        for moment in ("old", "new"):
            found[f"_{moment}_times"] = f"_{moment}_times"
            outputs = zip(self.outputs.of(member), node.node.shown, strict=True)
            found |= {f"_{moment}_{slot}": f"_{moment}_{name}" for slot, name in outputs}
        return {**found, SAME: SAME, BELOW: BELOW}

    def _steps(self, rendering: Rendering) -> str:
        versions = rendering.part(self.block.versions(rendering))
        columns = self.block.columns
        moved = f"{FROM} > {BEGINNING} OR {TO} < {FOREVER}"
        listed = ", ".join([*columns, *VERSION])
        versions = rendering.part(f"SELECT {listed} FROM {versions} WHERE {moved}")
        rows = rendering.part(ends(rendering, versions, columns, beginning=False))
        pieces = [self._piece(i) for i in range(len(self.members))]
        rows = rendering.part(rendering.dialect.exploded(rows, [CN, CHANGE], pieces))
        sums = ", ".join(
            f"CAST(SUM({rendering.dialect.times(x, type_)}) AS {type_}) AS {x}"
            for x, type_ in zip(self.sums.names, self.sums.types, strict=True)
        )
        by = ", ".join([MEMBER, *self.keys.names, CN])
        return rendering.part(f"SELECT {by}, {sums} FROM {rows} GROUP BY {by}")

    def _piece(self, member: int) -> dict[str, str]:
        """What the member makes of a row of the join."""
        node = self.members[member]
        keys = dict(zip(self.keys.of(member), _key_texts(node), strict=True))
        sums = dict(zip(self.sums.of(member), (s.sql for s in _sums(node)), strict=True))
        found = {MEMBER: str(member)}
        for slots, own in ((self.keys, keys), (self.sums, sums)):
            for name, type_ in zip(slots.names, slots.types, strict=True):
                found[name] = f"CAST({own.get(name, 'NULL')} AS {type_})"
        return found

    def _shown(self, moment: str, shown: str) -> list[str]:
        """Columns: what every fold shows of its sums at the moment, and how many times."""
        times: dict[int, str] = {}
        outputs: dict[str, dict[int, str]] = {name: {} for name in self.outputs.names}
        for i, node in enumerate(self.members):
            if node.fold is None:
                continue
            fold, names = node.fold, self._names(i, node.fold, moment)
            many = renamed(fold.times, names)
            there = f"({many}) > 0"
            if fold.having:
                there += f" AND ({renamed(fold.having, names)})"
            times[i] = f"CASE WHEN {there} THEN {many} ELSE 0 END"
            for slot, (_, sql) in zip(self.outputs.of(i), fold.outputs, strict=True):
                outputs[slot][i] = f"CASE WHEN {there} THEN {renamed(sql, names)} END"
        columns = [f"CAST({_chosen(times)} AS BIGINT) AS _{shown}_times"]
        return columns + [f"{_chosen(own)} AS _{shown}_{name}" for name, own in outputs.items()]

    def _names(self, member: int, fold: Fold, moment: str) -> dict[str, str]:
        """What the names in a fold's expressions stand for."""
        names = dict(zip(fold.key_names, self.keys.of(member), strict=True))
        sums = (s.name for s in fold.all_sums)
        names |= {n: f"_{moment}_{x}" for n, x in zip(sums, self.sums.of(member), strict=True)}
        values = {name: f"({renamed(sql, names)})" for name, sql in fold.values}
        return names | values


def shared_joins(nodes: Sequence[PlanNode]) -> Iterator[list[int]]:
    """Which of the nodes have one join: their places, in groups of two and more."""
    found: dict[tuple[Operator, tuple[object, ...]], list[int]] = {}
    for place, node in enumerate(nodes):
        if _fits(node):
            join = with_used(_join(node), {})
            inputs = tuple(_read(origin) for origin in node.inputs)
            found.setdefault((join, inputs), []).append(place)
    yield from (places for places in found.values() if len(places) > 1)


def _fits(node: PlanNode) -> bool:
    """Whether it is a fold or a projection of joins; a lambda's own names must not be renamed."""
    if node.fold is None and not isinstance(node.node.block, Project):
        return False
    if not all(isinstance(o, _SHARED) for o in walk(_join(node))):
        return False
    return node.fold is None or not any("->" in text for text in _texts(node.fold))


def _texts(fold: Fold) -> Iterable[str]:
    yield fold.times
    yield fold.having or ""
    yield from (sql for _, sql in (*fold.values, *fold.outputs))


def _join(node: PlanNode) -> Operator:
    block = node.node.block
    return block.operand if node.fold is None and isinstance(block, Project) else block


def _read(origin: Origin) -> object:
    return (origin.node, origin.digest) if isinstance(origin, FromNode) else origin.relation


def _keyed(node: PlanNode) -> tuple[tuple[str, str], ...]:
    """The columns by which a member's steps are summed, with their types."""
    return node.columns if node.fold is None else tuple((k.name, k.type) for k in node.fold.keys)


def _key_texts(node: PlanNode) -> list[str]:
    if node.fold is not None:
        return [k.sql for k in node.fold.keys]
    assert isinstance(node.node.block, Project)
    return [sql for _, sql in node.node.block.outputs]


def _sums(node: PlanNode) -> tuple[Sum, ...]:
    return (Sum(ROWS, "1"),) if node.fold is None else node.fold.all_sums


def _slots(name: str, wanted: Sequence[Sequence[str]]) -> Slots:
    """Every member takes, for each of its columns, the first slot of the type that is free."""
    types: list[str] = []
    places: list[tuple[int, ...]] = []
    for own in wanted:
        taken: list[int] = []
        for type_ in own:
            free = (i for i, t in enumerate(types) if t == type_ and i not in taken)
            place = next(free, len(types))
            if place == len(types):
                types.append(type_)
            taken.append(place)
        places.append(tuple(taken))
    return Slots(name, tuple(types), tuple(places))


def _chosen(texts: Mapping[int, str]) -> str:
    """One text per member; members of the same text together."""
    alike: dict[str, list[int]] = {}
    for member, text in texts.items():
        alike.setdefault(text, []).append(member)
    if not alike:
        return "NULL"
    cases = (f"WHEN {MEMBER} IN ({', '.join(map(str, m))}) THEN {t}" for t, m in alike.items())
    return f"CASE {' '.join(cases)} END"


def with_used(value: Any, used: Mapping[int, tuple[int, ...]]) -> Any:
    """The operator with other columns used by its scans."""
    if isinstance(value, Scan):
        return replace(value, used=used.get(value.number, ()))
    if isinstance(value, tuple):
        return tuple(with_used(v, used) for v in value)
    if is_dataclass(value) and not isinstance(value, type):
        own = {f.name: with_used(getattr(value, f.name), used) for f in fields(value)}
        return replace(value, **own)
    return value
