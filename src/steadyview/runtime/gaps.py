"""At which cns nodes have states: at every one that lies in none of their gaps.

A node whose states only count at the ends of batches takes the window (after, upto] in one step;
its states are those at `after` and at `upto`, and what lies between is a gap. Changes that were
compressed leave one as well. Who reads a node has a state at most where that has one:

    a node has a state at c  =>  every node that it reads has a state at c

So a window ends where all the nodes that it is made of have a state, and it has a gap where one of
them has: a node takes that much of it in one step, whatever it is kept at.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from steadyview.catalog import Gap, Gaps
from steadyview.errors import ViewStopped
from steadyview.plans.versions import Step


class KnownGaps:
    """The gaps of some nodes.

    >>> known = KnownGaps([Gap(1, 4, 9), Gap(1, 9, 12), Gap(2, 0, 4)])
    >>> known.around(1, 9), known.around(1, 11) == Gap(1, 9, 12)
    (None, True)
    >>> known.newest_common({1: 12, 2: 30}, 11), known.newest_common({1: 12, 2: 2}, 11)
    (9, 2)
    """

    def __init__(self, gaps: Iterable[Gap]) -> None:
        self._of: defaultdict[int, list[Gap]] = defaultdict(list)
        for gap in sorted(gaps, key=lambda g: g.low):
            self.add(gap)

    def add(self, gap: Gap) -> None:
        """A gap behind all that the node has."""
        self._of[gap.view].append(gap)

    def around(self, node: int, cn: int) -> Gap | None:
        """The gap in which the cn lies."""
        gaps = self._of[node]
        place = bisect_right(gaps, cn, key=lambda g: g.high)
        return gaps[place] if place < len(gaps) and gaps[place].low < cn else None

    def within(self, node: int, after: int, upto: int) -> list[Step]:
        """What of its gaps lies in the window (after, upto]."""
        gaps = self._of[node]
        place = bisect_right(gaps, after, key=lambda g: g.high)
        inside = takewhile(lambda g: g.low < upto, gaps[place:])
        return [(max(gap.low, after), min(gap.high, upto)) for gap in inside]

    def cut(self, node: int, cn: int) -> bool:
        """Forget what lies beyond the cn; whether there was anything."""
        gaps = self._of[node]
        if not gaps or gaps[-1].high <= cn:
            return False
        kept = [Gap(g.view, g.low, min(g.high, cn)) for g in gaps if g.low < cn]
        self._of[node] = [g for g in kept if g.high > g.low + 1]
        return True

    def newest_common(self, stand: Mapping[int, int], upto: int) -> int:
        """See `newest_common`."""
        return newest_common(self.around, stand, upto)


def newest_common(
    around: Callable[[int, int], Gap | None], stand: Mapping[int, int], upto: int
) -> int:
    """The newest cn, `upto` at most, at which all of these nodes have a state.

    `around`: the gap of a node in which a cn lies. `stand`: where each stands now, which is a state
    of its, whatever was begun there.
    """
    found = min([upto, *stand.values()])
    while True:
        gaps = [g for i, cn in stand.items() if found < cn and (g := around(i, found))]
        if not gaps:
            return found
        found = min(gap.low for gap in gaps)


@dataclass(frozen=True)
class Window:
    """A node's part of a piece, as far as it is known when the piece begins.

    It goes on after cn `after`. `every_state`: somebody needs a state at every cn. `touched`:
    whether relations that it reads itself changed. `begun`: where it has to end, if anywhere; up to
    there a crash has left its steps. `held`: what comes of it is not shown, so that others read
    what was shown before.
    """

    node: int
    reads: Sequence[int]
    after: int
    every_state: bool = True
    touched: bool = True
    begun: int | None = None
    held: bool = False


class Windows:
    """The windows of one piece: what of them is taken in one step, and where each ends.

    What gaps they make is recorded when this is made, before anything of them is written.
    """

    def __init__(
        self, gaps: Gaps, windows: Sequence[Window], upto: int, stands: Callable[[int], int]
    ) -> None:
        """`windows`: each behind those of what it reads; `stands`: where any node stands."""
        self._upto = upto
        self._stands = stands
        self._windows = {w.node: w for w in windows}
        self._held = {w.node for w in windows if w.held}
        after = min((w.after for w in windows), default=upto)
        self._known = KnownGaps(gaps.of({i for w in windows for i in (w.node, *w.reads)}, after))
        self._may_reach: dict[int, int] = {}
        """Where each window ends if all goes well."""
        self._steps: dict[int, tuple[Step, ...]] = {}
        self._moving: set[int] = set()
        cut = [w for w in windows if self._known.cut(w.node, w.after)]
        new = [gap for w in windows for gap in self._entered(w)]
        if cut or new:
            gaps.begin({w.node: w.after for w in windows}, new)

    def steps(self, node: int) -> tuple[Step, ...]:
        """What of the node's window is taken in one step each, as far as it may reach."""
        return self._steps[node]

    def end(self, node: int, stand: Mapping[int, int]) -> int:
        """Where the node's window ends; where it begins, if the node has to wait.

        `stand`: how far the nodes are by now that it reads. ViewStopped for one that can never end
        where a crash has left its steps.
        """
        window = self._windows[node]
        begun, found = window.begun, self._known.newest_common(stand, self._upto)
        if begun is None:
            return max(found, window.after)
        if found > begun and self._known.newest_common(stand, begun) < begun:
            raise _half_written(begun)
        return window.after if found < begun else begun

    def ahead(self, node: int, stand: Mapping[int, int]) -> bool:
        """Whether the node stands where what it reads has not come to, by `stand`."""
        window = self._windows[node]
        return not window.held and self._known.newest_common(stand, self._upto) < window.after

    def _entered(self, window: Window) -> list[Gap]:
        """What is found out about a window: the gaps that it makes."""
        node, after = window.node, window.after
        known = self._may_reach
        reach = {i: known[i] if i in known else self._stands(i) for i in window.reads}
        upto = max(self._known.newest_common(reach, self._upto), after)
        if not window.held:
            self._may_reach[node] = upto
        steps = [(after, upto)]
        if window.every_state:
            steps = joined(s for i in window.reads for s in self._known.within(i, after, upto))
        self._steps[node] = steps_upto(steps, upto)
        read = (i in self._moving or (i not in known and reach[i] > after) for i in reach)
        if upto > after and (window.touched or any(read) or self._behind(window)):
            self._moving |= {node} - self._held
        else:
            return []
        gaps = [Gap(node, low, high) for low, high in self._steps[node]]
        for gap in gaps:
            self._known.add(gap)
        return gaps

    def _behind(self, window: Window) -> bool:
        """Whether something that it reads is further, and so may have changed already."""
        read = (self._windows[i] for i in window.reads if i in self._may_reach)
        return any(other.after > window.after for other in read)


def joined(steps: Iterable[Step]) -> list[Step]:
    """Steps that overlap as one; those that only touch stay two.

    >>> joined([(7, 9), (1, 4), (4, 6), (3, 5)])
    [(1, 6), (7, 9)]
    >>> joined([(1, 4), (4, 6)])
    [(1, 4), (4, 6)]
    """
    found: list[Step] = []
    for low, high in sorted(steps):
        if found and low < found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return found


def steps_upto(steps: Iterable[Step], upto: int) -> tuple[Step, ...]:
    """The steps of a window that ends at a cn; one of a single cn is none.

    >>> steps_upto([(1, 2), (2, 5), (6, 9)], 8)
    ((2, 5), (6, 8))
    """
    ends = ((low, min(high, upto)) for low, high in steps)
    return tuple((low, high) for low, high in ends if high > low + 1)


def _half_written(cn: int) -> ViewStopped:
    return ViewStopped(
        f"a crash has left half of a change up to cn {cn}",
        detail="what it reads has no state there any more, so the other half cannot be computed",
        hint="run: steadyview view rebuild, with the view's name",
    )


def newest_state(gaps: Gaps, stand: Mapping[int, int], upto: int) -> int:
    """`newest_common` by the gaps that are recorded."""
    return newest_common(gaps.around, stand, upto)
