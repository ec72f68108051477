"""What the search for one level found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from steadyview.checking.commit_order import Vector

HOLDS: Final = "holds"
FAILS: Final = "fails"
UNKNOWN: Final = "unknown"


@dataclass(frozen=True)
class Finding:
    """`answer` is one of the three above.

    `vectors`: where it holds, a vector for each distinct state. Where it fails, `broken` is the
    first distinct state that breaks it and `before` the vectors at which the state before it could
    be shown.
    """

    answer: str
    vectors: Sequence[Vector] = ()
    broken: int = 0
    before: Sequence[Vector] = ()
