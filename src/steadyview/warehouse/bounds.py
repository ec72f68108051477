"""Whether every sum of an aggregate view is surely small enough to be shown.

A running sum is kept in a wider type than SUM has: a state that cannot be shown can still be
computed. The footers of the view's files bound every group at every cn without reading a row:

    |sum(group, cn)|  <=  max |sum| in the base  +  sum over delta files of  rows * max |sum|
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from functools import lru_cache
from pathlib import Path

import pyarrow.parquet as pq

from steadyview.delta import AddedFile
from steadyview.delta.failures import told
from steadyview.warehouse.view_store import Shape, ViewStore

_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")
_BIGINT = Decimal(2**63 - 1)


def surely_shown(store: ViewStore, after: int, added: Iterable[AddedFile]) -> bool:
    """Whether no sum can be out of range between cn `after` and the end of the added files."""
    limits = _limits(store.shape)
    if not limits:
        return True
    base = store.newest_base()
    known = [(f.path, 1) for f in store.base.files(base.version)]
    residual = store.delta_files(store.delta.version(), base.cn, after)
    known += [(f.path, f.rows) for f in residual]
    known += [(str(store.delta.path / f.path), f.rows) for f in added]
    return all(_total(known, column) <= limit for column, limit in limits.items())


def _limits(shape: Shape) -> dict[str, Decimal]:
    """Per state column `_sum_{a}` that an output shows, the largest value that can be shown."""
    outputs = " ".join(o.sql for o in shape.definition.outputs) if shape.definition else ""
    limits: dict[str, Decimal] = {}
    for a, types in enumerate(zip(shape.types.sums, shape.types.averages, strict=True)):
        shown = [
            _limit(type_)
            for type_, kind in zip(types, ("sum", "avg"), strict=True)
            if type_ and re.search(rf"\b_visible_{kind}_{a}\b", outputs)
        ]
        if found := [limit for limit in shown if limit is not None]:
            limits[f"_sum_{a}"] = min(found)
    return limits


def _limit(type_: str) -> Decimal | None:
    """The largest value of the type; None for a type that takes any sum.

    >>> _limit("BIGINT"), _limit("DECIMAL(5,2)"), _limit("DOUBLE")
    (Decimal('9223372036854775807'), Decimal('999'), None)
    """
    if type_ == "BIGINT":
        return _BIGINT
    found = _DECIMAL.fullmatch(type_)
    return Decimal(10) ** (int(found[1]) - int(found[2])) - 1 if found else None


def _total(files: Iterable[tuple[str, int]], column: str) -> Decimal:
    return sum((_largest(path, column) * times for path, times in files), Decimal(0))


@lru_cache(maxsize=20_000)
def _largest(path: str, column: str) -> Decimal:
    """The largest absolute value of a column in a file, infinity if unknown; files never change."""
    with told(Path(path)):
        metadata = pq.read_metadata(path)
    index = metadata.schema.to_arrow_schema().get_field_index(column)
    groups = (metadata.row_group(g).column(index) for g in range(metadata.num_row_groups))
    return max((value for group in groups for value in _extremes(group)), default=Decimal(0))


def _extremes(chunk: pq.ColumnChunkMetaData) -> Iterator[Decimal]:
    found = chunk.statistics
    if found is None or not found.has_min_max:
        yield Decimal("Infinity")
        return
    yield from (abs(Decimal(value)) for value in (found.min, found.max))
