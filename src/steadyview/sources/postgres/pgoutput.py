"""Decoder of pgoutput (protocol version 1): whole columns at a time, no Python object per value.

A chunk's row messages of one relation and one layout are laid side by side in one buffer. All rows
are walked together, column by column: with `at` the vector of the rows' read positions,

    kind  = buffer[at]                       n NULL, u unchanged TOAST, t text
    length= big-endian int32 at  at + 1      if kind is t
    at   += 1  or  5 + length

Assumes: REPLICA IDENTITY FULL, so an update carries its whole old row, and an unchanged TOAST value
is found there. Every message is prefixed by the 25 bytes of XLogData.
Invariant: rows come out in stream order; an update is its old row (-1) directly before its new row
(+1).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

HEADER = 25
"""Bytes of XLogData before the pgoutput message."""
INSERT, UPDATE, DELETE = ord("I"), ord("U"), ord("D")
ROW_KINDS = frozenset((INSERT, UPDATE, DELETE))
WHOLE_OLD_ROW = ord("O")
"""The letter before an old row that was logged whole."""
_FIRST_TUPLE = HEADER + 8
_NULL, _UNCHANGED, _TEXT = ord("n"), ord("u"), ord("t")
_LONG_VALUES = 64
_EPOCH_2000 = 946_684_800_000_000

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Begin:
    """The start of a transaction: its 32-bit xid, its commit's place and time (us since 1970)."""

    xid: int
    lsn: int
    committed: int


@dataclass(frozen=True)
class RelationMessage:
    """A relation as the stream describes it before its first change and after every DDL."""

    oid: int
    path: tuple[str, str]
    full_identity: bool
    columns: tuple[tuple[str, int, int], ...]
    """Name, type oid and type modifier, in the order of the tuples that follow."""


def read_begin(data: bytes) -> Begin:
    """Message B."""
    lsn, stamp, xid = struct.unpack_from("!QqI", data, HEADER + 1)
    return Begin(xid, lsn, stamp + _EPOCH_2000)


def read_commit_end(data: bytes) -> int:
    """Message C: the LSN just behind the commit."""
    return int(struct.unpack_from("!Q", data, HEADER + 10)[0])


def read_message(data: bytes) -> tuple[str, str]:
    """Message M: the prefix and the text of a logical message."""
    prefix, at = _text(data, HEADER + 10)
    return prefix, data[at + 4 :].decode(errors="replace")


def read_truncate(data: bytes) -> tuple[int, ...]:
    """Message T: the oids of the truncated relations."""
    (count,) = struct.unpack_from("!I", data, HEADER + 1)
    return struct.unpack_from(f"!{count}I", data, HEADER + 6)


def read_relation(data: bytes) -> RelationMessage:
    """Message R."""
    (oid,) = struct.unpack_from("!I", data, HEADER + 1)
    schema, at = _text(data, HEADER + 5)
    table, at = _text(data, at)
    identity, count = struct.unpack_from("!cH", data, at)
    at += 3
    columns: list[tuple[str, int, int]] = []
    for _ in range(count):
        name, at = _text(data, at + 1)
        type_oid, typmod = struct.unpack_from("!Ii", data, at)
        at += 8
        columns.append((name, type_oid, typmod))
    return RelationMessage(oid, (schema or "pg_catalog", table), identity == b"f", tuple(columns))


def _text(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(b"\0", at)
    return data[at:end].decode(), end + 1


@dataclass
class RowMessages:
    """Row messages of one relation under one layout, with the transactions they belong to."""

    messages: list[bytes] = field(default_factory=list)
    _firsts: list[int] = field(default_factory=list)
    _seqs: list[int] = field(default_factory=list)
    _xids: list[int] = field(default_factory=list)
    _last: int = -1

    def add(self, data: bytes, seq: int, xid: int) -> None:
        """Append a message; a transaction's messages come together."""
        if seq != self._last:
            self._last = seq
            self._firsts.append(len(self.messages))
            self._seqs.append(seq)
            self._xids.append(xid)
        self.messages.append(data)

    def tags(self) -> tuple[Ints, Ints]:
        """The seq and the xid of each message."""
        bounds = np.array([*self._firsts, len(self.messages)], dtype=np.int64)
        runs = bounds[1:] - bounds[:-1]
        seqs = np.repeat(np.array(self._seqs, dtype=np.int64), runs)
        return seqs, np.repeat(np.array(self._xids, dtype=np.int64), runs)


@dataclass(frozen=True)
class DecodedRows:
    """Row images: the texts of each wanted column, and the tags of each row."""

    texts: list[pa.Array]
    counts: npt.NDArray[np.int32]
    seqs: Ints
    xids: Ints


@dataclass(frozen=True)
class _Span:
    """Where one column's values stand in the buffer, per row."""

    start: npt.NDArray[np.int64]
    length: npt.NDArray[np.int64]
    kind: npt.NDArray[np.uint8]


def decode(rows: RowMessages, columns: int, wanted: list[int]) -> DecodedRows:
    """All row images, in order. `wanted` are places among the layout's `columns`."""
    raw = b"".join((*rows.messages, b"\0" * 8))
    buffer = np.frombuffer(raw, dtype=np.uint8)
    sizes = np.fromiter(map(len, rows.messages), dtype=np.int64, count=len(rows.messages))
    begins = np.cumsum(sizes) - sizes
    kinds = buffer[begins + HEADER]
    firsts, after = _walk(raw, buffer, begins + _FIRST_TUPLE, columns, wanted)
    updated = np.flatnonzero(kinds == UPDATE)
    # After an update's old row stand the letter N and the column count, then the new row.
    seconds, _ = _walk(raw, buffer, after[updated] + 3, columns, wanted)
    places = np.arange(len(kinds)) + np.cumsum(kinds == UPDATE) - (kinds == UPDATE)
    order = _Order(places, places[updated] + 1, updated)
    seqs, xids = rows.tags()
    counts = np.where(kinds == INSERT, 1, -1).astype(np.int32)
    ones = np.ones(len(updated), dtype=np.int32)
    return DecodedRows(
        [_texts(raw, buffer, order.merged(a, b)) for a, b in zip(firsts, seconds, strict=True)],
        order.scatter(counts, ones),
        order.scatter(seqs, seqs[updated]),
        order.scatter(xids, xids[updated]),
    )


@dataclass(frozen=True)
class _Order:
    """Where first tuples and updates' second tuples go among the row images."""

    first: Ints
    second: Ints
    updated: Ints

    def scatter(self, first: npt.NDArray[Any], second: npt.NDArray[Any]) -> npt.NDArray[Any]:
        out = np.empty(len(first) + len(second), dtype=first.dtype)
        out[self.first] = first
        out[self.second] = second
        return out

    def merged(self, first: _Span, second: _Span) -> _Span:
        """Both tuples' spans in row order; an unchanged TOAST value is the old row's."""
        same = second.kind == _UNCHANGED
        old = self.updated
        return _Span(
            self.scatter(first.start, np.where(same, first.start[old], second.start)),
            self.scatter(first.length, np.where(same, first.length[old], second.length)),
            self.scatter(first.kind, np.where(same, first.kind[old], second.kind)),
        )


def _walk(
    raw: bytes, buffer: npt.NDArray[np.uint8], at: Ints, columns: int, wanted: list[int]
) -> tuple[list[_Span], Ints]:
    """Step over one tuple of every row: the wanted columns' spans, and where each row got to."""
    ints = np.ndarray((len(raw) - 3,), dtype=">i4", buffer=raw, strides=(1,))
    spans: dict[int, _Span] = {}
    keep = set(wanted)
    for column in range(columns):
        kind = buffer[at]
        valued = kind == _TEXT
        length = np.where(valued, ints[at + 1], 0).astype(np.int64)
        if column in keep:
            spans[column] = _Span(at + 5, length, kind)
        at = at + 1 + np.where(valued, 4, 0) + length
    return [spans[w] for w in wanted], at


def _texts(raw: bytes, buffer: npt.NDArray[np.uint8], span: _Span) -> pa.Array:
    """The values of a span as one string array."""
    offsets = np.zeros(len(span.length) + 1, dtype=np.int32)
    np.cumsum(span.length, out=offsets[1:])
    valid = pa.array(span.kind == _TEXT).buffers()[1]
    data = pa.py_buffer(_gathered(raw, buffer, span, offsets))
    array = pa.Array.from_buffers(
        pa.binary(), len(span.length), [valid, pa.py_buffer(offsets), data]
    )
    return array.cast(pa.string())


def _gathered(
    raw: bytes, buffer: npt.NDArray[np.uint8], span: _Span, offsets: npt.NDArray[np.int32]
) -> bytes | npt.NDArray[np.uint8]:
    """The values' bytes side by side: by index for short values, by slices for long ones."""
    total = int(offsets[-1])
    if total > _LONG_VALUES * len(span.length):
        ends = span.start + span.length
        return b"".join(raw[a:b] for a, b in zip(span.start.tolist(), ends.tolist(), strict=True))
    shift = np.repeat(span.start - offsets[:-1], span.length)
    return buffer[np.arange(total) + shift]
