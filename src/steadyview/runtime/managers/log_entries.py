"""Rows of the update log as entries of streams: what a transaction did to each record.

    entry e of stream s on record r  =  net of transaction e's rows of s on r        (one, or none)

A stream is a part of a source's log: all changes of one base row, known by its table's key, are in
one; a table without a key is in the first. Entries are numbered by the source's transactions.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from steadyview.changes.types import COUNT, SEQ
from steadyview.maintenance.records.additive_views import added
from steadyview.maintenance.records.entries import LogEntry, LogStream
from steadyview.plans.scan import column
from steadyview.runtime.managers.record_view import ReadRelation, RecordView
from steadyview.serving.json_texts import key_text

BUCKETS = 4
PARTITIONING = 1
"""Counts the ways in which logs are cut into buckets."""


def streams_of(view: RecordView, incarnation: int) -> list[LogStream]:
    """All streams of the view."""
    return [
        LogStream(source, incarnation, PARTITIONING, bucket)
        for source in view.sources
        for bucket in range(BUCKETS)
    ]


def stream_text(stream: LogStream) -> str:
    """What a store calls it.

    >>> stream_text(LogStream("shop", 7, 1, 0))
    'shop/7/1/0'
    """
    return "/".join(map(str, stream))


@dataclass(frozen=True)
class LogRows:
    """Rows of one table's log."""

    read: ReadRelation
    rows: pa.Table


def entries_of(
    view: RecordView, incarnation: int, source: str, logs: Sequence[LogRows]
) -> dict[LogStream, list[LogEntry]]:
    """The entries that these rows of one source are, by stream, in order; whole transactions."""
    found: dict[tuple[int, int, tuple[Any, ...]], Any] = {}
    for log in logs:
        for number, bucket, names, n in _images(log):
            _note(view, log.read, found, (number, bucket), names, n)
    entries: dict[LogStream, list[LogEntry]] = {}
    for (number, bucket, key), what in found.items():
        stream = LogStream(source, incarnation, PARTITIONING, bucket)
        new = what if view.keyed else (key, what)
        if view.keyed or any(what):
            entry = LogEntry(source, key, None, new, number, (stream,))
            entries.setdefault(stream, []).append(entry)
    for listed in entries.values():
        listed.sort(key=lambda entry: entry.number)
    return entries


def _note(
    view: RecordView,
    read: ReadRelation,
    found: dict[tuple[int, int, tuple[Any, ...]], Any],
    place: tuple[int, int],
    names: dict[str, Any],
    n: int,
) -> None:
    row = view.rows_of[read.number](names)
    if view.keyed:
        key = (*place, view.key_of(names))
        if n > 0:
            found[key] = None if row is None else view.values_of(row)
        else:
            found.setdefault(key, None)
    elif row is not None:
        key = (*place, view.key_of(row))
        amounts = tuple(n * amount for amount in view.amounts_of(row))
        found[key] = added(found.get(key), amounts)


def _images(log: LogRows) -> Iterator[tuple[int, int, dict[str, Any], int]]:
    """The net row images: transaction, bucket, the row by the block's names, how many."""
    read = log.read
    numbers = sorted({*read.columns, *read.key})
    columns = [SEQ, *(f"c{i}" for i in numbers)]
    rows = log.rows.select([*columns, COUNT])
    net = rows.group_by(columns).aggregate([(COUNT, "sum")])
    net = net.filter(pc.not_equal(net[f"{COUNT}_sum"], 0))
    names = [column(read.number, i) for i in numbers]
    values = [net[f"c{i}"].to_pylist() for i in numbers]
    keys = [numbers.index(i) for i in read.key]
    counts, seqs = net[f"{COUNT}_sum"].to_pylist(), net[SEQ].to_pylist()
    for seq, n, *row in zip(seqs, counts, *values, strict=True):
        key = key_text([row[i] for i in keys], read.key_types) if keys else ""
        bucket = zlib.crc32(key.encode()) % BUCKETS if keys else 0
        yield seq, bucket, dict(zip(names, row, strict=True)), n
