"""What may go wrong in a run.

A manager that dies is replaced at once by one that begins behind what is registered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Faults:
    """`crash`: a manager dies before or after the store did its request, or the answer is lost.

    `window`: positions are registered every few entries, not after each. `late`: a request comes
    after its manager gave up and did the entry again. `copies`: a second manager begins behind what
    is registered while the first goes on, and either dies at any time. `lag`: scans and reads of
    base records may show an older state, and say so.
    """

    name: str
    crash: bool = False
    window: bool = False
    late: bool = False
    copies: bool = False
    lag: bool = False


_FAULTS = (
    Faults("none"),
    Faults("crash", crash=True),
    Faults("window", crash=True, window=True),
    Faults("late", late=True),
    Faults("two copies", copies=True),
    Faults("mixed", crash=True, window=True, late=True, copies=True),
)
FAULTS: Final[Mapping[str, Faults]] = {fault.name: fault for fault in _FAULTS}
