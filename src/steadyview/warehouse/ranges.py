"""Which ranges of a view delta can be compressed: between cuts, tight around what changed.

A range (a, b] with its first change f and its last change l is the same as (f - 1, l]: so that is
what a range is here, and only the moments in [f, l) are lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from steadyview.catalog import Gap
from steadyview.plans.versions import step_ends


def to_compress(
    view: int,
    changed: np.ndarray,
    gaps: Sequence[Gap],
    until: int,
    cuts: Iterable[int],
    handed_out: Iterable[tuple[int, int]] = (),
) -> list[Gap]:
    """The ranges up to a cn and between the cuts in which there is something to compress.

    `changed`: the cns that changed the view, ascending; `gaps`: its gaps, which are never cut: one
    around a cut stays by itself, and those within a range become part of it. `handed_out`: what no
    range may touch, (p, m] for each pair.

    >>> found = to_compress(1, np.array([3, 4, 7, 9, 21]), [], until=20, cuts=[4])
    >>> [(gap.low, gap.high, gap.commits) for gap in found]
    [(2, 4, 2), (6, 9, 2)]
    """
    lows = np.array([g.low for g in gaps], dtype=np.int64)
    highs = np.array([g.high for g in gaps], dtype=np.int64)
    commits = np.array([1 if g.commits is None else g.commits for g in gaps], dtype=np.int64)
    single = changed[step_ends(changed, [(g.low, g.high) for g in gaps]) == changed]
    single = single[~np.isin(single, highs)]
    lows = np.concatenate([lows, single - 1])
    order = np.argsort(lows, kind="stable")
    highs = np.concatenate([highs, single])[order]
    commits = np.concatenate([commits, np.ones(len(single), dtype=np.int64)])[order]
    wanted = highs <= until
    lows, highs, commits = lows[order][wanted], highs[wanted], commits[wanted]
    read = [*handed_out]
    ends = np.unique([until, *cuts, *(end for pair in read for end in pair)]).astype(np.int64)
    between = np.searchsorted(ends, highs, side="left")
    alone = between != np.searchsorted(ends, lows, side="right")
    for after, upto in read:
        alone |= (lows < upto) & (highs > after)
    return _joined(view, lows, highs, commits, between, alone)


def _joined(
    view: int,
    lows: np.ndarray,
    highs: np.ndarray,
    commits: np.ndarray,
    between: np.ndarray,
    alone: np.ndarray,
) -> list[Gap]:
    """Neighbours between the same cuts as one; of those that stand alone none."""
    if not len(lows):
        return []
    begins = np.ones(len(lows), dtype=bool)
    begins[1:] = (between[1:] != between[:-1]) | alone[1:] | alone[:-1]
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(lows)) - 1
    many = last > first
    summed = np.add.reduceat(commits, first)
    ranges = zip(lows[first[many]], highs[last[many]], summed[many], strict=True)
    return [Gap(view, int(low), int(high), int(count)) for low, high, count in ranges]
