"""The decoder against an encoder written from PostgreSQL's description of the protocol."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from steadyview.sources.postgres import pgoutput
from steadyview.sources.postgres.pgoutput import RowMessages, decode

XLOG = b"w" + b"\0" * 24
UNCHANGED = object()

values = st.one_of(st.none(), st.text(max_size=3), st.text(min_size=60, max_size=300))


@st.composite
def histories(draw: st.DrawFn) -> tuple[int, list[tuple[str, list, list]]]:
    width = draw(st.integers(1, 4))
    row = st.lists(values, min_size=width, max_size=width)
    new = st.lists(st.one_of(values, st.just(UNCHANGED)), min_size=width, max_size=width)
    change = st.tuples(st.sampled_from("IUD"), row, new)
    return width, draw(st.lists(change, min_size=1, max_size=20))


def encoded(row: list) -> bytes:
    out = struct.pack("!H", len(row))
    for value in row:
        if value is None:
            out += b"n"
        elif value is UNCHANGED:
            out += b"u"
        else:
            raw = value.encode()
            out += b"t" + struct.pack("!I", len(raw)) + raw
    return out


def message(kind: str, row: list, new: list) -> bytes:
    relation = struct.pack("!I", 99)
    if kind == "I":
        return XLOG + b"I" + relation + b"N" + encoded(row)
    old = XLOG + kind.encode() + relation + b"O" + encoded(row)
    return old + b"N" + encoded(new) if kind == "U" else old


def images(kind: str, row: list, new: list) -> list[tuple[int, list]]:
    if kind == "I":
        return [(1, row)]
    if kind == "D":
        return [(-1, row)]
    return [(-1, row), (1, [o if n is UNCHANGED else n for o, n in zip(row, new, strict=True)])]


@given(histories(), st.data())
def test_what_was_encoded_is_decoded_in_order(
    history: tuple[int, list], data: st.DataObject
) -> None:
    width, changes = history
    wanted = data.draw(
        st.permutations(range(width)).flatmap(lambda p: st.integers(0, width).map(lambda n: p[:n]))
    )
    rows = RowMessages()
    expected = []
    for number, change in enumerate(changes):
        seq = 10 + number // 3
        rows.add(message(*change), seq, seq * 7)
        expected += [
            (count, seq, seq * 7, [row[w] for w in wanted]) for count, row in images(*change)
        ]
    found = decode(rows, width, list(wanted))
    columns = [t.to_pylist() for t in found.texts]
    got = [
        (int(found.counts[i]), int(found.seqs[i]), int(found.xids[i]), [c[i] for c in columns])
        for i in range(len(found.counts))
    ]
    assert got == expected


def test_a_relation_message_is_read() -> None:
    body = struct.pack("!I", 7) + "größe\0".encode() + b"t\0f" + struct.pack("!H", 1)
    body += b"\x01" + b"id\0" + struct.pack("!Ii", 23, -1)
    found = pgoutput.read_relation(XLOG + b"R" + body)
    assert found == pgoutput.RelationMessage(7, ("größe", "t"), True, (("id", 23, -1),))
