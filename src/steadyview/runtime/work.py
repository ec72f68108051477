"""What a batch is to do for a node, and what it has done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from steadyview.catalog import Base, Gaps
from steadyview.runtime.kept import Kept
from steadyview.runtime.planning import Planned
from steadyview.warehouse.view_store import ViewStore

Standing = Callable[[int], tuple[ViewStore, int]]
"""Where the node with an id lives, and the cn at which it is published."""


@dataclass(frozen=True)
class Work:
    """A node's part of a batch: its change after cn `after`, or its first state (`after` None).

    `every_state`: whether somebody needs its state at every cn. `begun`: up to where a crash has
    left its steps, if that is further than its rows. `held`: its change is stored, and not shown.
    """

    kept: Kept
    store: ViewStore
    after: int | None
    every_state: bool = True
    begun: int | None = None
    held: bool = False

    @property
    def plan(self) -> Planned:
        """By which it is kept."""
        return self.kept.plan

    @property
    def unfinished(self) -> int | None:
        """The cn at which it has to end first; None: anywhere."""
        return None if self.begun is None or self.begun <= (self.after or 0) else self.begun


@dataclass(frozen=True)
class Done:
    """What a node can publish: its state at `upto`.

    With `error` it failed at `upto + 1` and stops (`mendable`: by values at the source); with
    `fault`, of ours, it is to be tried again.
    """

    work: Work
    upto: int
    delta_version: int
    base: Base | None = None
    error: str | None = None
    fault: Exception | None = None
    changes: int = 0
    mendable: bool = False

    @property
    def failed(self) -> bool:
        """Whether the node did not get as far as it should."""
        return self.error is not None or self.fault is not None


@dataclass(frozen=True)
class Asked:
    """Questions sent to sources, and the rows of their answers."""

    sent: int = 0
    rows: int = 0

    def since(self, before: Asked) -> Asked:
        """Those that came after."""
        return Asked(self.sent - before.sent, self.rows - before.rows)


@dataclass(frozen=True)
class Others:
    """What a batch knows of all nodes: where each lives and stands published, and their gaps."""

    standing: Standing
    gaps: Gaps
