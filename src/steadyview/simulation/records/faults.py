"""What may go wrong in a run.

A manager that dies is replaced at once by one that begins behind what is registered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class RunFaults:
    """`crash`: a manager dies before or after the store did its request, or the answer is lost.

    `window`: positions are registered every few entries, not after each. `late`: a request comes
    after its manager gave up and did the entry again. `copies`: a second manager begins behind what
    is registered while the first goes on, and either dies at any time. `lag`: scans of the base
    tables may show an older state, and say so.
    `restored`: once, the store is what it was before, and all managers begin anew; `restored` says
    how it was copied. `repartitioned`: once, others go on with streams that are cut otherwise; the
    managers before them die, but with `copies` they go on too.
    """

    name: str
    crash: bool = False
    window: bool = False
    late: bool = False
    copies: bool = False
    lag: bool = False
    restored: str = ""
    repartitioned: bool = False


AT_ONCE, REGISTRY_FIRST, REGISTRY_LAST = "at once", "registry first", "registry last"
REGISTRY_ELSEWHERE = "registry elsewhere"
"""How a store is copied: as one, positions before or after the records, or not at all."""
_FAULTS = (
    RunFaults("none"),
    RunFaults("crash", crash=True),
    RunFaults("window", crash=True, window=True),
    RunFaults("late", late=True),
    RunFaults("two copies", copies=True),
    RunFaults("mixed", crash=True, window=True, late=True, copies=True),
)
RESTORED: Final = RunFaults("restored", crash=True, window=True, restored=AT_ONCE)
REPARTITIONED: Final = RunFaults("re-partitioned", crash=True, window=True, repartitioned=True)
STALE_MANAGERS: Final = RunFaults(
    "re-partitioned, stale managers",
    crash=True,
    window=True,
    late=True,
    copies=True,
    repartitioned=True,
)
LAG: Final = RunFaults("lag", crash=True, window=True, copies=True, lag=True)
FAULTS: Final[Mapping[str, RunFaults]] = {fault.name: fault for fault in _FAULTS}
