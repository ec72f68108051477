"""The visible changes of an aggregate view without Spark: where they are few, and surely the same.

Rows of base and view delta are sums per group, so states are added up here as Spark would add them:
whole numbers and decimals, exactly. What remains is whether two visible rows of a group are equal:

    key           always: it is the group
    COUNT, SUM    where the numbers are (a SUM is shown with the digits it is kept with)
    AVG, double   where float(sum) / float(n) is: both steps round as IEEE says, here and in Java
    AVG, decimal  surely where the fractions are, surely not where they are two last digits apart

Spark is asked for everything else: expressions over aggregates, keys whose equality is not that of
their bytes (FLOAT, DOUBLE, collations), averages of more than six decimals, averages that differ by
less than two last digits, sums beyond their type, and states that no rows give, which it refuses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from steadyview.catalog.views import Base, ViewRow
from steadyview.changes import arrow_type
from steadyview.delta import FileEntry
from steadyview.delta.files import check_whole
from steadyview.delta.parquet import reading
from steadyview.warehouse.view_store import Shape, ViewStore

MOST = 100_000
"""Rows of base and view delta together that are added up here."""
_EXACT = Context(prec=120)
_BIGINT = Decimal(2**63)
_SUM = Decimal(10) ** 31
"""A larger sum is left to Spark: between its steps an average has room for so much."""
_COUNT = 10**12
_SCALE = 6
"""Up to so many decimals Spark cuts nothing off between the steps of an average."""
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")
_SHOWN = re.compile(r"_(visible_sum|visible_avg|nonnull)_(\d+)")
_KEY = re.compile(r"_g\d+")
_KEYS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "BOOLEAN", "STRING", "BINARY", "DATE")
_TIMES = ("TIMESTAMP", "TIMESTAMP_NTZ")

Group = tuple[Any, ...]


@dataclass(frozen=True)
class Changed:
    """Visible rows that a commit added and removed (an update of a row is one of each)."""

    cn: int
    added: int
    removed: int


class Doubtful(Exception):
    """Not surely what Spark would say."""


@dataclass(frozen=True)
class State:
    """The state row of a group: rows, and per argument its non-NULL values and their sum."""

    count: int = 0
    nonnull: tuple[int, ...] = ()
    sums: tuple[Decimal | None, ...] = ()

    def plus(self, other: State, sign: int = 1) -> State:
        """Added up; None stays None, where an argument is counted only."""
        return State(
            self.count + sign * other.count,
            tuple(a + sign * b for a, b in zip(self.nonnull, other.nonnull, strict=True)),
            tuple(
                None if a is None or b is None else a + sign * b
                for a, b in zip(self.sums, other.sums, strict=True)
            ),
        )

    def possible(self) -> bool:
        """Whether there are rows that give it; compare `engine.statements.sound`."""
        pairs = zip(self.nonnull, self.sums, strict=True)
        return self.count >= 0 and all(
            0 <= n <= self.count and (n > 0 or not total) for n, total in pairs
        )


def small_changes(store: ViewStore, row: ViewRow, base: Base) -> list[Changed] | None:
    """The commits that changed an aggregate view, newest first; None where Spark must be asked."""
    shape = store.shape
    columns = _columns(shape)
    start, newest, version = row.oldest_cn, row.cn or 0, row.delta_version or 0
    listed = store.base.files(base.version)
    low, high = min(base.cn, start), max(base.cn, newest)
    changed = store.delta_files(version, low, high)
    if columns is None or sum(file.rows for file in (*listed, *changed)) > MOST:
        return None
    try:
        with localcontext(_EXACT):
            delta = _read(store.delta.path, changed, shape, shape.delta)
            first = _read(store.base.path, listed, shape, shape.states)
            states = _at(shape, first, delta, base.cn, start)
            return _counted(shape, columns, states, _within(delta, start, newest))
    except Doubtful:
        return None


# --- what is shown -----------------------------------------------------------------------------

Column = Callable[[State], Any]
"""A visible column of a state: values that are equal where Spark's are."""


@dataclass(frozen=True)
class Mean:
    """An average, not divided; `digit` is the worth of the last digit that is shown."""

    total: Decimal
    n: int
    digit: Decimal

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mean):
            return False
        apart = abs(self.total * other.n - other.total * self.n)
        if not apart:
            return True
        if apart <= 2 * self.digit * self.n * other.n:
            raise Doubtful
        return False

    __hash__ = None  # type: ignore[assignment]


def _columns(shape: Shape) -> list[Column] | None:
    """The columns that tell rows of a group apart; None if one of them is Spark's matter."""
    assert shape.definition is not None
    if not all(_plain_key(type_) for type_ in shape.types.keys):
        return None
    found = [_column(shape, o.sql) for o in shape.definition.outputs if not _KEY.fullmatch(o.sql)]
    known = [column for column in found if column is not None]
    return known if len(known) == len(found) else None


def _plain_key(type_: str) -> bool:
    return type_ in (*_KEYS, *_TIMES) or bool(_DECIMAL.fullmatch(type_))


def _column(shape: Shape, sql: str) -> Column | None:
    if sql == "_count":
        return lambda state: state.count
    match = _SHOWN.fullmatch(sql)
    if match is None:
        return None
    kind, a = match[1], int(match[2])
    if kind == "nonnull":
        return lambda state: state.nonnull[a]
    if kind == "visible_sum":
        return _sum_column(a, str(shape.types.states[a]), str(shape.types.sums[a]))
    return _mean_column(a, str(shape.types.states[a]), str(shape.types.averages[a]))


def _sum_column(a: int, kept: str, shown: str) -> Column | None:
    limit = _limit(kept, shown)
    if limit is None:
        return None

    def column(state: State) -> Decimal | None:
        total = state.sums[a]
        if not state.nonnull[a] or total is None:
            return None
        return _below(total, limit)

    return column


def _limit(kept: str, shown: str) -> Decimal | None:
    """What a sum must be below; None where it is not shown with the digits it is kept with.

    >>> _limit("DECIMAL(38,2)", "DECIMAL(7,2)"), _limit("DECIMAL(38,2)", "DECIMAL(7,1)")
    (Decimal('100000'), None)
    """
    state, visible = _DECIMAL.fullmatch(kept), _DECIMAL.fullmatch(shown)
    if state is None:
        return None
    if shown == "BIGINT":
        return _BIGINT if state[2] == "0" else None
    if visible is None or visible[2] != state[2]:
        return None
    return Decimal(10) ** (int(visible[1]) - int(visible[2]))


def _mean_column(a: int, kept: str, shown: str) -> Column | None:
    state, visible = _DECIMAL.fullmatch(kept), _DECIMAL.fullmatch(shown)
    if state is None or (shown != "DOUBLE" and visible is None):
        return None
    scale = int(state[2])
    if visible is not None and (scale > _SCALE or int(visible[2]) < scale):
        return None
    digit = Decimal(1).scaleb(-int(visible[2])) if visible else Decimal(0)
    largest = Decimal(10) ** (int(visible[1]) - int(visible[2])) - 2 * digit if visible else _SUM

    def column(state: State) -> float | Mean | None:
        total, n = state.sums[a], state.nonnull[a]
        if not n or total is None:
            return None
        if visible is None:
            return float(total) / float(n)
        _below(Decimal(n), Decimal(_COUNT))
        _below(abs(_below(total, _SUM)), largest * n)
        return Mean(total, n, digit)

    return column


def _below(value: Decimal, limit: Decimal) -> Decimal:
    if abs(value) >= limit:
        raise Doubtful
    return value


# --- adding up ---------------------------------------------------------------------------------

Rows = list[tuple[Group, State, int]]
"""Group, state or change of it, and cn (0 in a base)."""


def _read(
    table: Any, files: Sequence[FileEntry], shape: Shape, columns: list[tuple[str, str]]
) -> Rows:
    check_whole(files)
    names = [name for name, _ in columns]
    with reading(table, [file.path for file in files]):
        pieces = [
            pq.ParquetFile(file.path, page_checksum_verification=True).read(columns=names)
            for file in files
        ]
    return [row for piece in pieces for row in _rows(piece, shape, dict(columns))]


def _rows(piece: pa.Table, shape: Shape, types: dict[str, str]) -> Iterable[tuple[Any, State, int]]:
    columns = {name: _values(piece[name], type_) for name, type_ in types.items()}
    nothing: list[None] = [None] * piece.num_rows
    arguments = range(len(shape.types.states))
    keys = [columns[name] for name in types if _KEY.fullmatch(name)]
    groups = zip(*keys, strict=True) if keys else [()] * piece.num_rows
    nonnull = [columns[f"_nonnull_{a}"] for a in arguments]
    sums = [columns.get(f"_sum_{a}", nothing) for a in arguments]
    cns = columns.get("_cn", [0] * piece.num_rows)
    for i, group in enumerate(groups):
        numbers = tuple(column[i] for column in nonnull)
        totals = tuple(column[i] for column in sums)
        yield group, State(columns["_count"][i], numbers, totals), cns[i]


def _values(column: pa.ChunkedArray, type_: str) -> list[Any]:
    """Python values that are equal where Spark's are."""
    found = column.cast(arrow_type(type_))
    if type_ == "STRING":
        found = found.cast(pa.binary())
    elif type_ in _TIMES:
        found = found.cast(pa.int64())
    elif type_ == "DATE":
        found = found.cast(pa.int32())
    values: list[Any] = found.to_pylist()
    return values


def _within(rows: Rows, after: int, upto: int) -> Rows:
    return [row for row in rows if after < row[2] <= upto]


def _at(shape: Shape, first: Rows, delta: Rows, base_cn: int, cn: int) -> dict[Group, State]:
    """The states at cn, from those of a base and the view delta between."""
    zero = tuple(None if state is None else Decimal(0) for state in shape.types.states)
    empty = State(0, (0,) * len(zero), zero)
    states: dict[Group, State] = {} if shape.types.keys else {(): empty}
    for group, state, _ in first:
        states[group] = states.get(group, empty).plus(state)
    between = _within(delta, min(base_cn, cn), max(base_cn, cn))
    for group, change, _ in between:
        states[group] = states.get(group, empty).plus(change, 1 if cn >= base_cn else -1)
    return states


def _counted(
    shape: Shape, columns: list[Column], states: dict[Group, State], delta: Rows
) -> list[Changed]:
    events: dict[Group, list[tuple[int, State]]] = {}
    for group, change, cn in delta:
        events.setdefault(group, []).append((cn, change))
    for group, state in states.items():
        if group not in events:
            _shown(shape, columns, state)
    added: dict[int, int] = {}
    removed: dict[int, int] = {}
    for group, changes in events.items():
        for cn, before, after in _steps(shape, columns, states.get(group), changes):
            if before == after:
                continue
            added[cn] = added.get(cn, 0) + (after is not None)
            removed[cn] = removed.get(cn, 0) + (before is not None)
    return [Changed(cn, added[cn], removed[cn]) for cn in sorted(added, reverse=True)]


def _steps(
    shape: Shape, columns: list[Column], first: State | None, changes: list[tuple[int, State]]
) -> Iterable[tuple[int, Any, Any]]:
    """What is seen of a group before and after each cn that changed it."""
    changes.sort(key=lambda change: change[0])
    if any(one == other for (one, _), (other, _) in pairwise(changes)):
        raise Doubtful
    state, before = first, None if first is None else _shown(shape, columns, first)
    for cn, change in changes:
        state = change if state is None else state.plus(change)
        after = _shown(shape, columns, state)
        yield cn, before, after
        before = after


def _shown(shape: Shape, columns: list[Column], state: State) -> list[Any] | None:
    if not state.possible():
        raise Doubtful
    if shape.types.keys and not state.count:
        return None
    return [column(state) for column in columns]
