"""Sets of vectors as integers, a bit for each.

The vectors over base records with n1, n2, ... versions are the positions of their product, the last
version fastest. Then

    one version later in a record   =   shifted by that record's stride, where there is a later one
    up(S)   =   all vectors that are not before every one of S
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import product

from steadyview.checking.records.history import BaseKey, RecordView, Shown, TimeLines

Shape = tuple[int, ...]


@lru_cache(maxsize=4096)
def _steps(shape: Shape) -> tuple[tuple[int, int, int], ...]:
    """Per record: how many steps there are, the stride, and the vectors that have a later one."""
    found = []
    stride = 1
    for place in reversed(range(len(shape))):
        size = shape[place]
        total = 1
        for n in shape:
            total *= n
        movable = sum(1 << v for v in range(total) if v // stride % size < size - 1)
        found.append((size - 1, stride, movable))
        stride *= size
    return tuple(found)


def up(vectors: int, shape: Shape) -> int:
    """The closure: these and all later ones.

    >>> bin(up(0b000010, (2, 3)))
    '0b110110'
    """
    for times, stride, movable in _steps(shape):
        for _ in range(times):
            vectors |= (vectors & movable) << stride
    return vectors


def versions(vector: int, shape: Shape) -> tuple[int, ...]:
    """Which version of each base record a vector has.

    >>> versions(5, (2, 3))
    (1, 2)
    """
    found = []
    for size in reversed(shape):
        vector, version = divmod(vector, size)
        found.append(version)
    return tuple(reversed(found))


def masks(
    view: RecordView, key: Hashable, bases: Sequence[BaseKey], timelines: TimeLines
) -> Mapping[Shown, int]:
    """By value, the vectors that give it."""
    lines = [
        [None if row is None else (base[0], row) for row in timelines[base]] for base in bases
    ]
    found: dict[Shown, int] = {}
    for bit, rows in enumerate(product(*lines)):
        value = view.value(key, [row for row in rows if row is not None])
        found[value] = found.get(value, 0) | 1 << bit
    return found


def first_of(vectors: int) -> int:
    """The least position in a set."""
    return (vectors & -vectors).bit_length() - 1


def shape_of(bases: Iterable[BaseKey], timelines: TimeLines) -> Shape:
    """How many versions each has."""
    return tuple(len(timelines[base]) for base in bases)
