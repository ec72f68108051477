"""Post-images: per record of a view that changed, what it is now, or that it is gone.

    signature(r)  =  the cn of r's last change in the batch
    image(r)      =  the row that this commit added; a tombstone where it added none

Needed: a key that is unique at every cn. That is seen here, of what a batch says:

    rows of r at cn  =  rows at the start  +  the changes up to cn         is 0 or 1, at every cn

The start is 0 or 1 and not known here. Where the sums of the changes differ by more than 1, the key
is not unique for certain; where one of them is 1, it is if there was a row at the start: such keys
are `new`, for whoever knows the store to look.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from steadyview.serving.json_texts import key_texts
from steadyview.serving.layout import CN, DEAD, KEY, RecordLayout

COUNT = "_count"


@dataclass(frozen=True)
class Images:
    """`rows`: `_key`, the view's columns, `_cn`, `_dead`; a key once.

    `twice`: keys that have more than one row at some cn. `new`: keys that have, unless they had no
    row at the start.
    """

    rows: pa.Table
    twice: pa.Array
    new: pa.Array


def images_of_state(rows: pa.Table, layout: RecordLayout, cn: int) -> Images:
    """The records of all rows of a view, or of some: all of a key."""
    keyed = _keyed(rows, layout)
    numbers = _numbers(keyed[KEY])
    counts = np.bincount(numbers) if len(numbers) else np.zeros(0, np.int64)
    twice = keyed[KEY].filter(pa.array(counts[numbers] > 1)).unique()
    names = [name for name, _ in layout.columns]
    signed = _signed(keyed, np.full(keyed.num_rows, cn), names, dead=False)
    return Images(signed, _plain(twice), _none())


def images_of_changes(changes: pa.Table, layout: RecordLayout) -> Images:
    """The records that these changes lead to: the view's columns, `_count`, `_cn`; all of a key."""
    names = [name for name, _ in layout.columns]
    net = _net(_keyed(changes, layout), names)
    if not net.num_rows:
        return Images(_signed(net, np.zeros(0, np.int64), names, dead=False), _none(), _none())
    numbers, cns, counts = _numbers(net[KEY]), net[CN].to_numpy(), net[COUNT].to_numpy()
    keys = _plain(net[KEY].unique())
    last = np.full(len(keys), -1, dtype=np.int64)
    np.maximum.at(last, numbers, cns)
    newest = cns == last[numbers]
    # what a commit leaves of a key that it changed is what it added
    there = newest & (counts > 0)
    rows_of = np.bincount(numbers[there], weights=counts[there], minlength=len(keys))
    low, high = _ends_of_sums(numbers, cns, counts)
    twice = (high - low > 1) | (rows_of > 1)
    live = _once(there, numbers)
    gone = _once(newest & (rows_of == 0)[numbers], numbers)
    images = pa.concat_tables(
        [
            _signed(net.take(pa.array(live)), cns[live], names, dead=False),
            _signed(_emptied(net.take(pa.array(gone)), layout), cns[gone], names, dead=True),
        ]
    )
    return Images(images, keys.filter(pa.array(twice)), keys.filter(pa.array(high == 1)))


def _keyed(rows: pa.Table, layout: RecordLayout) -> pa.Table:
    rows = _comparable(rows)
    keys = layout.keys
    texts = key_texts([rows[name] for name, _ in keys], [type_ for _, type_ in keys])
    return rows.append_column(KEY, texts)


def _net(keyed: pa.Table, names: Sequence[str]) -> pa.Table:
    """Each row with its count at each cn, where that is not 0."""
    by = [KEY, CN, *names]
    net = keyed.group_by(by).aggregate([(COUNT, "sum")]).rename_columns([*by, COUNT])
    return net.filter(pc.not_equal(net[COUNT], 0))


def _once(chosen: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """The places of chosen rows, one of each number."""
    places = np.flatnonzero(chosen)
    _, first = np.unique(numbers[places], return_index=True)
    return places[first]


def _signed(rows: pa.Table, cns: np.ndarray, names: Sequence[str], *, dead: bool) -> pa.Table:
    found = rows.select([KEY, *names])
    found = found.append_column(CN, pa.array(cns.astype(np.int64)))
    return found.append_column(DEAD, pa.array(np.full(found.num_rows, dead)))


def _emptied(rows: pa.Table, layout: RecordLayout) -> pa.Table:
    """Rows of their key alone: what else a record was stays in its previous version."""
    for name, _ in layout.values:
        place = rows.schema.get_field_index(name)
        field = rows.schema.field(place)
        rows = rows.set_column(place, field, pa.nulls(rows.num_rows, field.type))
    return rows


def _ends_of_sums(
    numbers: np.ndarray, cns: np.ndarray, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Per key, the least and the greatest of its running sums, of which 0 at the start is one."""
    order = np.lexsort((cns, numbers))
    number, cn, count = numbers[order], cns[order], counts[order]
    running = np.cumsum(count)
    starts = np.searchsorted(number, np.arange(number.max() + 1))
    running -= np.where(starts > 0, running[starts - 1], 0)[number]
    # a sum counts only at the end of its commit
    ends = np.append((number[1:] != number[:-1]) | (cn[1:] != cn[:-1]), True)
    high = np.zeros(number.max() + 1, dtype=np.int64)
    low = high.copy()
    np.maximum.at(high, number[ends], running[ends])
    np.minimum.at(low, number[ends], running[ends])
    return low, high


def _numbers(keys: pa.ChunkedArray) -> np.ndarray:
    """A number per row, the same for the same key, in the order in which keys come first."""
    numbers: np.ndarray = _plain(keys).dictionary_encode().indices.to_numpy()
    return numbers


def _plain(found: pa.ChunkedArray | pa.Array) -> pa.Array:
    if isinstance(found, pa.ChunkedArray):
        return pa.concat_arrays(found.chunks) if found.num_chunks else pa.array([], found.type)
    return found


def _none() -> pa.Array:
    return pa.array([], pa.string())


def _comparable(rows: pa.Table) -> pa.Table:
    """The rows with one form of zero: an update from -0.0 to 0.0 changes nothing."""
    for i, column in enumerate(rows.columns):
        if pa.types.is_floating(column.type):
            rows = rows.set_column(i, rows.field(i), pc.add(column, pa.scalar(0.0, column.type)))
    return rows
