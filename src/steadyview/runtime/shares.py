"""A node's part in a batch, as far as it is: window, inputs, trouble."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from steadyview.engine.window_input import WindowInput
from steadyview.plans.asking import Ask, Reached
from steadyview.plans.plan import FromNode, PlanNode
from steadyview.runtime.trouble import Trouble
from steadyview.runtime.work import Work


@dataclass
class Share:
    """A node's part in a batch, as far as it is."""

    work: Work
    inputs: dict[int, WindowInput] = field(default_factory=dict)
    asked: list[Ask[pa.Array]] = field(default_factory=list)
    reached: list[Reached[pa.Array]] = field(default_factory=list)
    upto: int = 0
    one_step: bool = False
    trouble: Trouble | None = None
    over: bool = False

    @property
    def node(self) -> PlanNode:
        """Its plan."""
        assert self.work.plan.node is not None
        return self.work.plan.node

    @property
    def window(self) -> tuple[int, int]:
        """(after, upto]."""
        after = self.upto if self.work.after is None else self.work.after
        return after, self.upto

    @property
    def name(self) -> str:
        """What the view or hidden node is called."""
        return self.work.plan.name

    @property
    def id(self) -> int:
        """That of its row."""
        return self.work.kept.id

    @property
    def parents(self) -> list[int]:
        """The ids of the nodes that it reads."""
        return list(self.work.kept.inputs.values())

    @property
    def place(self) -> tuple[tuple[int, int], bool, frozenset[int]]:
        """Its window, and the nodes that it reads: only alike ones can be computed as one."""
        return self.window, self.one_step, frozenset(self.parents)

    def waits_at(self, cn: int) -> bool:
        """Whether a piece that ends at the cn is due for it; also to publish what is there."""
        after, published = self.work.after or 0, self.work.kept.row.cn or 0
        unpublished = published < after == cn and not self.work.held
        return not self.over and (after < cn or unpublished)

    def reads(self, scan: int) -> int | None:
        """The id of the node that a scan reads; None: it reads a relation."""
        origin = self.node.inputs[scan]
        return self.work.kept.inputs[origin.node] if isinstance(origin, FromNode) else None

    def narrow(self) -> None:
        """Go on with what it asked for itself, where all nodes together asked for many rows.

        Ends are few, and those of some rows are not among those of more.
        """
        asked: dict[int, list[tuple[int | None, pa.Array | None]]] = {}
        for ask in self.asked:
            asked.setdefault(id(self.inputs[ask.scan]), []).append((ask.column, ask.keys))
        many = {id(i): i for scan, i in self.inputs.items() if scan not in self.node.ends}
        own = {number: i.narrowed(asked.get(number, [])) for number, i in many.items()}
        self.inputs = {scan: own.get(id(i), i) for scan, i in self.inputs.items()}

    def touched(self, upto: int) -> bool:
        """Whether anything that it reads changed up to cn `upto`."""
        assert self.work.after is not None
        return any(i.touched(self.work.after, upto) for i in self.inputs.values())

    def moves(self) -> bool:
        """Whether there is anything to compute."""
        after, upto = self.window
        return after < upto and self.touched(upto)


def layers(shares: Sequence[Share]) -> Iterator[list[Share]]:
    """The nodes in an order in which each stands behind those it reads."""
    left = list(shares)
    while left:
        waiting = {s.id for s in left}
        ready = [s for s in left if waiting.isdisjoint(s.parents)]
        left = [s for s in left if s not in ready]
        yield ready
