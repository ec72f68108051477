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

    `vectors`: of each distinct state, as far as the level holds. `broken`: where it fails, the
    first distinct state that no such vectors reach. `path`: if complete, every vector on
    the way, one transaction apart.
    """

    answer: str
    vectors: Sequence[Vector] = ()
    broken: int = 0
    path: Sequence[Vector] = ()
