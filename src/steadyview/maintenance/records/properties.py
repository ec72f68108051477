"""The five properties of update signatures (section IV-B), as predicates on tags.

An update signature in the paper is what tags one operation on one view record. What a record stores
is the set of its tags, as a vector. The properties hold of the tag; of what is stored the fifth is
false, for on a redrive the vector has entries of others that it had not before.

    1  operations for different base updates have different tags
    2  and so have those on different views,
    3  and on different records of one view, for one base update
    4  tags of one base record are in one stream, in the order of its updates
    5  the same base update, view and record: the same tag; no clock, attempt or manager is in it
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import combinations
from typing import Any, Final, NamedTuple

from steadyview.maintenance.records.entries import LogEntry, LogStream, RecordKey


class Tag(NamedTuple):
    """What an operation is known by."""

    view: str
    record: RecordKey
    stream: LogStream
    number: int


class TaggedOperation(NamedTuple):
    """An operation: for which version of which base record, on which view and record, under what.

    `tag` is a Tag, or whatever else a culprit takes for one: ordered, with the stream next to last.
    """

    base: tuple[str, Hashable]
    version: int
    view: str
    record: RecordKey
    tag: Any


def tag_of(view: str, record: RecordKey, entry: LogEntry) -> Tag:
    """A function of the base update, the view and the record, and of nothing else."""
    return Tag(view, record, entry.stream, entry.number)


def _update(operation: TaggedOperation) -> tuple[Any, int]:
    return operation.base, operation.version


def _by_update(a: TaggedOperation, b: TaggedOperation) -> bool:
    return _update(a) == _update(b) or a.tag != b.tag


def _by_view(a: TaggedOperation, b: TaggedOperation) -> bool:
    return _update(a) != _update(b) or a.view == b.view or a.tag != b.tag


def _by_record(a: TaggedOperation, b: TaggedOperation) -> bool:
    return _update(a) != _update(b) or a.record == b.record or a.tag != b.tag


def _ordered(a: TaggedOperation, b: TaggedOperation) -> bool:
    if a.base != b.base:
        return True
    in_order = (a.version < b.version) == (a.tag[-1] < b.tag[-1])
    return bool(a.tag[-2] == b.tag[-2] and in_order)


def _repeated(a: TaggedOperation, b: TaggedOperation) -> bool:
    return a[:4] != b[:4] or bool(a.tag == b.tag)


Holds = Callable[[TaggedOperation, TaggedOperation], bool]
SIGNATURE_PROPERTIES: Final[Mapping[int, Holds]] = {
    1: _by_update,
    2: _by_view,
    3: _by_record,
    4: _ordered,
    5: _repeated,
}


def broken_properties(
    operations: Iterable[TaggedOperation],
) -> Mapping[int, tuple[TaggedOperation, TaggedOperation]]:
    """By property, two operations that break it."""
    found: dict[int, tuple[TaggedOperation, TaggedOperation]] = {}
    for a, b in combinations(operations, 2):
        for number, holds in SIGNATURE_PROPERTIES.items():
            if not holds(a, b):
                found.setdefault(number, (a, b))
    return found
