"""The level of every view record of a history.

    S(0) = the vectors that give the first value;   S(n) = up(S(n-1)) AND those that give value n

A record is strong if no S(n) is empty: each S(n) is exactly the set of vectors at which a chain
that explains the first n values can be. The witness is the first value whose set is empty; for a
strong record, a chain.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

from steadyview.checking.records.history import BaseKey, RecordHistory, Shown
from steadyview.checking.records.sentences import sentence
from steadyview.checking.records.vectors import Shape, first_of, masks, shape_of, up, versions
from steadyview.checking.verdict import LEVELS


@dataclass(frozen=True)
class RecordFinding:
    """What one view record reached.

    `at`: the first value that breaks the next level; None if there is no higher one. `missing`: a
    value that should have been shown. `pairwise`: whether it is strong as printed.
    """

    key: Hashable
    values: tuple[Shown, ...]
    bases: tuple[BaseKey, ...]
    level: str
    pairwise: bool
    at: int | None
    reached: tuple[int, ...] = ()
    """Of a strong record, the sets S(n)."""
    shape: Shape = ()
    missing: Shown = None

    @cached_property
    def chain(self) -> tuple[tuple[int, ...], ...]:
        """Of a strong record, a vector for every value: which version of each of `bases`."""
        vectors = _backwards(self.reached, self.shape) if self.reached else []
        return tuple(versions(vector, self.shape) for vector in vectors)

    @property
    def sentence(self) -> str:
        """What holds and why no more does."""
        return sentence(self.key, self.values, self.level, self.at, self.missing)

    def to_dict(self) -> dict[str, Any]:
        """The whole as plain data."""
        return {
            "record": self.key,
            "level": self.level,
            "pairwise strong": self.pairwise,
            "values": list(self.values),
            "at": self.at,
            "bases": list(self.bases),
            "chain": [list(vector) for vector in self.chain],
            "sentence": self.sentence,
        }


@dataclass(frozen=True)
class RecordVerdict:
    """Of a whole history: its lowest record decides."""

    findings: Sequence[RecordFinding]

    @property
    def lowest(self) -> RecordFinding:
        """The record that says most about what went wrong."""
        return min(self.findings, key=lambda finding: LEVELS.index(finding.level))

    @property
    def level(self) -> str:
        """The level that all records reached; `strong` where there are none."""
        return self.lowest.level if self.findings else "strong"

    @property
    def pairwise(self) -> bool:
        """Whether every record is strong as printed."""
        return all(finding.pairwise for finding in self.findings)

    @property
    def sentence(self) -> str:
        """About the lowest record."""
        return self.lowest.sentence if self.findings else "no view record was ever to be seen"


def judge_records(history: RecordHistory) -> RecordVerdict:
    """Every record of the history, by itself."""
    keys = sorted(history.keys, key=repr)
    return RecordVerdict([_judged(history, key) for key in keys])


def _judged(history: RecordHistory, key: Hashable) -> RecordFinding:
    values = collapsed(history.shown.get(key, (None,)))
    bases = tuple(history.view.deciding(key, history.timelines))
    shape = shape_of(bases, history.timelines)
    by_value = masks(history.view, key, bases, history.timelines)
    sets = [by_value.get(value, 0) for value in values]
    last = 1 << prod(shape) - 1
    if not sets[-1] & last:
        return RecordFinding(key, values, bases, "none", pairwise=False, at=len(values) - 1)
    invalid = next((n for n, vectors in enumerate(sets) if not vectors), None)
    if invalid is not None:
        return RecordFinding(key, values, bases, "convergent", pairwise=False, at=invalid)
    reached, stopped = _chained(sets, shape)
    if stopped is not None:
        return RecordFinding(key, values, bases, "weak", _in_pairs(sets, shape), stopped)
    unseen = [value for value in by_value if value not in values]
    level = "complete" if len(bases) == 1 and not unseen else "strong"
    missing = unseen[0] if unseen and len(bases) == 1 else None
    return RecordFinding(
        key, values, bases, level, True, None, tuple(reached), shape, missing=missing
    )


def collapsed(values: Sequence[Shown]) -> tuple[Shown, ...]:
    """Without repetitions.

    >>> collapsed([(1,), (1,), None, (1,)])
    ((1,), None, (1,))
    """
    return tuple(v for n, v in enumerate(values) if not n or v != values[n - 1])


def _chained(sets: Sequence[int], shape: Shape) -> tuple[list[int], int | None]:
    """The sets S(n), or the first value whose set is empty."""
    reached = [sets[0]]
    for number, vectors in enumerate(sets[1:], 1):
        both = up(reached[-1], shape) & vectors
        if not both:
            return [], number
        reached.append(both)
    return reached, None


def _backwards(reached: Sequence[int], shape: Shape) -> list[int]:
    """One vector of each set, none before the one that precedes it."""
    chain = [first_of(reached[-1])]
    for vectors in reversed(reached[:-1]):
        later = 1 << chain[-1]
        chain.append(next(v for v in _members(vectors) if up(1 << v, shape) & later))
    return chain[::-1]


def _members(vectors: int) -> Sequence[int]:
    return [v for v in range(vectors.bit_length()) if vectors >> v & 1]


def _in_pairs(sets: Sequence[int], shape: Shape) -> bool:
    """Strong as printed: for every two values, two vectors in order."""
    later = [up(vectors, shape) for vectors in sets]
    return all(later[i] & sets[j] for i in range(len(sets)) for j in range(i + 1, len(sets)))
