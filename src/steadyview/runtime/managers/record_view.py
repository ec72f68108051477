"""Which views are kept straight from the update log, and what their records are made of.

    additive   COUNT, SUM, AVG per group; DISTINCT, UNION, INTERSECT, EXCEPT: sums of a linear block
    keyed      selection and projection that keep the key of their table: a record has one base row

Whatever else there is (joins, MIN, MAX, HAVING, expressions that Spark alone computes) is served
from its changes; NotByRecord says why.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from functools import cached_property
from typing import Any

from steadyview.changes import RelationName, RelationSchema
from steadyview.plans.fold import ROWS, Fold
from steadyview.plans.plan import FromRelation, PlanNode
from steadyview.plans.scan import column
from steadyview.serving.json_texts import EXACT
from steadyview.serving.layout import RecordLayout
from steadyview.views.record_rows import (
    Named,
    NotByRecord,
    RowOf,
    block_types,
    evaluated,
    kind,
    rows_of_scan,
)

LOG_WAY = "update log"
LOG_LEVEL = "strong per record; nothing about several records"
_ARGUMENT = re.compile(r"CASE WHEN \((.*)\) IS NULL THEN 0 ELSE 1 END", re.DOTALL)
_SUM = re.compile(r"CASE WHEN (_count_\d+) > 0 THEN CAST\((_sum_\d+) AS ([^ ]+)\) END")
_AVERAGE = re.compile(
    r"CASE WHEN (_count_\d+) > 0 THEN CAST\((_sum_\d+) AS DOUBLE\) / CAST\(\1 AS DOUBLE\) END"
)
_COUNT = re.compile(r"_count_\d+")
_TIMES = re.compile(r"CASE WHEN (.*) THEN 1 ELSE 0 END")


@dataclass(frozen=True)
class ReadRelation:
    """A table that the view reads, by scan: its columns by number, and those that tell its rows."""

    number: int
    relation: RelationName
    columns: tuple[int, ...]
    key: tuple[int, ...]
    key_types: tuple[str, ...]


@dataclass(frozen=True)
class RecordView:
    """`key`: per column of the record's key, the expression that gives it.

    That is over the block's columns; of a keyed view, whose records may go by a row that the block
    leaves out, it is a column of the table.
    """

    node: PlanNode
    layout: RecordLayout
    reads: tuple[ReadRelation, ...]
    key: tuple[str, ...]

    def __getstate__(self) -> dict[str, Any]:
        """Without what was compiled: that is done again where it arrives."""
        return {field.name: self.__dict__[field.name] for field in fields(self)}

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources that it reads, by name."""
        return tuple(sorted({read.relation.source for read in self.reads}))

    @property
    def keyed(self) -> bool:
        """Whether a record has one base row."""
        return self.node.fold is None

    @cached_property
    def rows_of(self) -> Mapping[int, RowOf]:
        """By scan, what a row of its table becomes."""
        block, inputs = self.node.node.block, self.node.input_types
        return {r.number: rows_of_scan(block, inputs, r.number) for r in self.reads}

    @cached_property
    def key_of(self) -> Callable[[Named], tuple[Any, ...]]:
        """The key of the record that a row belongs to."""
        if self.keyed:
            return lambda names: tuple(names[c] for c in self.key)
        found = [evaluated(sql, self._types) for sql in self.key]
        return lambda names: tuple(value(names) for value in found)

    @cached_property
    def amounts_of(self) -> Callable[[Named], tuple[int, ...]]:
        """What a row of the block adds to the sums of its record, decimals in their last digit."""
        assert self.node.fold is not None
        arguments = dict(_arguments(self.node.fold))
        scales = [_scale(type_) for _, type_ in self.layout.sums]
        found = [evaluated(arguments[name], self._types) for name, _ in self.layout.sums]
        counts = [name.startswith("_count_") for name, _ in self.layout.sums]

        def amounts(names: Named) -> tuple[int, ...]:
            values = zip(found, counts, scales, strict=True)
            return tuple(_amount(value(names), counted, scale) for value, counted, scale in values)

        return amounts

    @cached_property
    def values_of(self) -> Callable[[Named], tuple[Any, ...]]:
        """The record's other columns, of a view whose records have one base row each."""
        shown = {name: c for c, (name, _) in zip(self._shown, self.layout.columns, strict=True)}
        wanted = [shown[name] for name, _ in self.layout.values]
        return lambda names: tuple(names[c] for c in wanted)

    def sums(self, amounts: Sequence[int]) -> Mapping[str, Any]:
        """Amounts as the store adds them."""
        pairs = zip(self.layout.sums, amounts, strict=True)
        return {
            name: Decimal(n).scaleb(-_scale(type_), EXACT) if type_.startswith("DECIMAL") else n
            for (name, type_), n in pairs
        }

    @property
    def _shown(self) -> tuple[str, ...]:
        return self.node.node.block.columns

    @cached_property
    def _types(self) -> Mapping[str, str]:
        return block_types(self.node.node.block, self.node.input_types)


def record_view(
    name: str,
    node: PlanNode | None,
    columns: Sequence[tuple[str, str]],
    key: Sequence[str],
    relations: Sequence[RelationSchema],
) -> RecordView:
    """The view as managers keep it; NotByRecord if they cannot."""
    if node is None:
        raise NotByRecord("it is recomputed as a whole")
    reads = tuple(_reads(node, relations))
    layout, keys = _keyed(name, node, columns, key, reads)
    if node.fold is not None:
        layout, keys = _additive(name, node, columns, key, reads)
    view = RecordView(node, layout, reads, keys)
    # compiled once here, so that what cannot be kept is known before anything is
    _ = view.rows_of, view.key_of, view.values_of if view.keyed else view.amounts_of
    return view


def _reads(node: PlanNode, relations: Sequence[RelationSchema]) -> list[ReadRelation]:
    known = {relation.name: relation for relation in relations}
    found = []
    for scan in node.scans:
        origin = node.inputs[scan.number]
        if not isinstance(origin, FromRelation):
            raise NotByRecord("it reads a view, or what several views share")
        relation = known[origin.relation]
        numbers = tuple(relation.number(c) for c in relation.key)
        types = tuple(relation.columns[i].type for i in numbers)
        found.append(ReadRelation(scan.number, origin.relation, scan.used, numbers, types))
    return found


def _keyed(
    name: str,
    node: PlanNode,
    columns: Sequence[tuple[str, str]],
    key: Sequence[str],
    reads: Sequence[ReadRelation],
) -> tuple[RecordLayout, tuple[str, ...]]:
    sums, log = ((ROWS, "BIGINT"),), _digest(node, reads)
    layout = RecordLayout(name, tuple(columns), tuple(key), sums, log=log)
    if node.fold is not None:
        return layout, ()
    if len(reads) != 1 or not reads[0].key:
        raise NotByRecord("its rows are not those of one table with a key")
    outputs = dict(getattr(node.node.block, "outputs", ()) or _themselves(node))
    placed = {n: outputs[c] for c, (n, _) in zip(node.node.block.columns, columns, strict=True)}
    wanted = {column(reads[0].number, i) for i in reads[0].key}
    if {placed[n] for n in key} != wanted or len(key) != len(wanted):
        raise NotByRecord("the key of its records is not that of its table")
    return layout, tuple(placed[n] for n in key)


def _digest(node: PlanNode, reads: Sequence[ReadRelation]) -> str:
    """Of what decides which records there are, and through which stream an entry comes."""
    keys = ";".join(",".join(map(str, read.key)) for read in reads)
    return f"{node.digest} {keys}"


def _themselves(node: PlanNode) -> list[tuple[str, str]]:
    return [(c, c) for c in node.node.block.columns]


def _additive(
    name: str,
    node: PlanNode,
    columns: Sequence[tuple[str, str]],
    key: Sequence[str],
    reads: Sequence[ReadRelation],
) -> tuple[RecordLayout, tuple[str, ...]]:
    fold = node.fold
    assert fold is not None
    if not fold.keys:
        raise NotByRecord("it has one row, also of nothing")
    if fold.having is not None:
        raise NotByRecord("it has a HAVING")
    exprs = {k.name: k.sql for k in fold.keys}
    outputs = [(n, sql) for (n, _), (_, sql) in zip(columns, fold.outputs, strict=True)]
    placed = {n: sql for n, sql in outputs if sql in exprs}
    if {placed.get(n) for n in key} != set(exprs) or len(key) != len(exprs):
        raise NotByRecord("the key of its records is not what it is grouped by")
    taken = {n.lower() for n in key} & {s.name for s in fold.all_sums}
    if taken:
        raise NotByRecord(f'a column is called "{taken.pop()}"')
    whole = {s for sql in dict(fold.values).values() for s in _whole(sql)}
    sums = tuple((s.name, "BIGINT" if s.name in whole else s.type) for s in fold.all_sums)
    arguments = dict(_arguments(fold))
    types = block_types(node.node.block, node.input_types)
    for name_, type_ in sums:
        if type_.startswith("DECIMAL") and kind(arguments[name_], types) == "whole":
            raise NotByRecord("its whole numbers are summed as decimals")
    shown = tuple((n, _shown(fold, sql)) for n, sql in outputs if n not in key)
    layout = RecordLayout(
        name, tuple(columns), tuple(key), sums, shown, _there(fold), _digest(node, reads)
    )
    return layout, tuple(exprs[placed[n]] for n in key)


def _arguments(fold: Fold) -> list[tuple[str, str]]:
    """Per sum, the expression over the block's columns of which it is the sum, or the count."""
    found = [(ROWS, "1")]
    counted = {}
    for kept in fold.sums:
        if kept.name.startswith("_tally_"):
            found.append((kept.name, kept.sql))
            continue
        if match := _ARGUMENT.fullmatch(kept.sql):
            counted[kept.name.rpartition("_")[2]] = match[1]
        place = kept.name.rpartition("_")[2]
        if place not in counted:
            raise NotByRecord("its sums are of other expressions")
        found.append((kept.name, counted[place]))
    return found


def _whole(sql: str) -> list[str]:
    """The sum that a value shows, if it is one of whole numbers."""
    if match := _AVERAGE.fullmatch(sql):
        return [match[2]]
    match = _SUM.fullmatch(sql)
    return [match[2]] if match and match[3] == "BIGINT" else []


def _shown(fold: Fold, output: str) -> str:
    """A visible column as SQL that every store understands, over the stored sums."""
    sql = dict(fold.values).get(output, output)
    if sql == ROWS or _COUNT.fullmatch(sql):
        return sql
    if match := _SUM.fullmatch(sql):
        return f"CASE WHEN {match[1]} > 0 THEN {match[2]} END"
    if match := _AVERAGE.fullmatch(sql):
        average = f"CAST({match[2]} AS DOUBLE PRECISION) / {match[1]}"
        return f"CASE WHEN {match[1]} > 0 THEN {average} END"
    raise NotByRecord(f"it shows {output if output not in dict(fold.values) else 'another sum'}")


def _there(fold: Fold) -> str:
    """When a record is shown, over the stored sums."""
    match = _TIMES.fullmatch(fold.times)
    if match is None:
        raise NotByRecord("it shows a row several times")
    found = match[1]
    for name, sql in fold.values:
        found = re.sub(rf"\b{re.escape(name)}\b", sql, found)
    return found


def _scale(type_: str) -> int:
    return int(type_.rstrip(")").rpartition(",")[2]) if type_.startswith("DECIMAL") else 0


def _amount(value: Any, counted: bool, scale: int) -> int:
    if counted:
        return int(value is not None)
    if value is None:
        return 0
    return int(value.scaleb(scale, EXACT)) if scale else int(value)
