"""Ranges to compress: as wide as they may be, and over nothing that anybody needs."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest

from steadyview.catalog import Gap
from steadyview.warehouse.ranges import to_compress

LAST = 30


def some_gaps(dice: random.Random) -> list[Gap]:
    ends = sorted(dice.sample(range(LAST), dice.choice((0, 2, 4, 6))))
    pairs = [(low, high) for low, high in zip(ends[::2], ends[1::2], strict=True) if high > low + 1]
    return [Gap(1, *pair, dice.choice((None, 2, 5)), dice.choice((0, 1))) for pair in pairs]


def units(changed: list[int], gaps: list[Gap]) -> list[Gap]:
    """What cannot be cut: a single change, or a gap with all in it."""
    inside = {cn for gap in gaps for cn in range(gap.low + 1, gap.high + 1)}
    single = [Gap(1, cn - 1, cn, 1) for cn in changed if cn not in inside]
    return sorted([*single, *gaps], key=lambda unit: unit.low)


@pytest.mark.parametrize("seed", range(400))
def test_a_range_is_all_between_two_cuts_and_reaches_over_none(seed: int) -> None:
    dice = random.Random(seed)
    changed = sorted(dice.sample(range(1, LAST), dice.randrange(LAST - 1)))
    gaps, until = some_gaps(dice), dice.randrange(LAST)
    cuts = {dice.randrange(LAST) for _ in range(dice.choice((0, 1, 3)))}
    positions = [dice.randrange(LAST) for _ in range(dice.choice((0, 0, 1, 2)))]
    handed_out = [(p, dice.randint(p, min(p + 6, LAST))) for p in positions]
    found = to_compress(1, np.array(changed, dtype=np.int64), gaps, until, cuts, handed_out)
    for one, next_ in pairwise(found):
        assert one.high <= next_.low
    whole = [unit for unit in units(changed, gaps) if unit.high <= until]
    stops = cuts | {end for pair in handed_out for end in pair}
    for gap in found:
        assert gap.high <= until
        assert not any(gap.low < stop < gap.high for stop in stops)
        assert not any(p < gap.high and m > gap.low for p, m in handed_out)
        within = [unit for unit in whole if gap.low <= unit.low and unit.high <= gap.high]
        overlapping = [u for u in whole if u.low < gap.high and u.high > gap.low]
        assert within == overlapping, "no gap is cut"
        assert (gap.low, gap.high) == (within[0].low, within[-1].high), "it is tight"
        assert gap.commits == sum(unit.commits or 1 for unit in within)
    for one, next_ in pairwise(whole):
        joined = any(gap.low <= one.low and next_.high <= gap.high for gap in found)
        between = any(one.low < stop < next_.high for stop in stops)
        taken = any(p < u.high and m > u.low for p, m in handed_out for u in (one, next_))
        assert joined == (not between and not taken), (one, next_)
