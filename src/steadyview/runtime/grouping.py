"""Which nodes of a batch are computed by one statement.

Nodes of one layer whose joins are equal but for the columns that they use; and with them those of
later layers that only project or sum the rows of one of them, and so need not wait for its change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from steadyview.plans.inlined import inlined
from steadyview.plans.plan import PlanNode
from steadyview.plans.shared_join import shared_joins
from steadyview.runtime.shares import Share

_MEMBERS = 20
"""So many nodes at most in one statement: Spark does not compile what gets too long."""


@dataclass(frozen=True)
class GroupMember:
    """A node in a group that is computed as one.

    `over`: the node that it reads and that is in the group as well; `node` is then over its inputs.
    """

    share: Share
    node: PlanNode
    over: Share | None = None


def together(layer: Sequence[Share], later: Sequence[Share]) -> list[list[GroupMember]]:
    """The nodes, those of one join over the same nodes and window in one group.

    With them those of later layers that only project or sum the rows of one of them.
    """
    ready = [s for s in layer if s.trouble is None and s.moves()]
    groups: list[list[GroupMember]] = []
    for place in {s.place for s in ready}:
        alike = [
            member for s in ready if s.place == place for member in _with_readers(s, later)
        ]
        for places in shared_joins([m.node for m in alike]):
            members = [alike[number] for number in places]
            for first in range(0, len(members), _MEMBERS):
                groups.append(_complete(members[first : first + _MEMBERS]))
    grouped = {m.share.id for group in groups for m in group}
    return groups + [[GroupMember(s, s.node)] for s in layer if s.id not in grouped]


def _with_readers(share: Share, later: Sequence[Share]) -> Iterator[GroupMember]:
    """The node, and those over its rows alone that have come as far and need not wait for it."""
    yield GroupMember(share, share.node)
    for reader in later:
        if reader.trouble is None and reader.parents == [share.id] and _alike(reader, share):
            node = inlined(reader.node, share.node)
            if node is not None:
                yield GroupMember(reader, node, share)


def _alike(reader: Share, share: Share) -> bool:
    """Whether the windows of both are the same, and taken in the same way."""
    same = reader.work.after == share.work.after and reader.steps == share.steps
    return same and not share.work.held and reader.work.unfinished in (None, share.upto)


def _complete(members: Sequence[GroupMember]) -> list[GroupMember]:
    """Without those that are over a node of another group."""
    there = {m.share.id for m in members}
    return [m for m in members if m.over is None or m.over.id in there]
