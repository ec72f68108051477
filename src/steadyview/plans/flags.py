"""Flags in the join key: pairs of unchanged rows are left out where a hot key would make many.

The change of a block is where its versions start and end, so a row that holds from the beginning
for ever counts only if it can still meet a change above. At a join J, with D the directions (see
`asking.py`) that lead from above J into what J is part of,

    marked(x)  =  x changed,  or  the key of x at the end of some d in D is among those d sent
    L x R      =  { (l, r) : marked(l) or marked(r), conditions hold }

is therefore enough: a pair that is not there never changes, and nothing that changed asks for it.
The keys that a direction sent are those of all rows beyond it that changed or can reach a change
there; so marks look as far as there are joins. Each direction is a *bit*; a scan's rows have those
of the keys that they meet, a joined row has the bits of both.

As an equality, so that nothing is multiplied first: a left row has the flag 1 if it is marked, else
0; a right row stands under 1, and under 0 too if it is marked; they meet where the flags are equal.

LEFT, semi, anti and mark joins also ask when a row has *no* partner. There the first unchanged row
of each key on the right counts as marked: it is a partner for all time, so that the gaps of a left
row are right without the others like it. That needs equalities alone: under a further condition,
which of them is a partner is not known before.

Not flagged: FULL (a right row under two flags is padded once for each), LEFT and the like with a
further condition, a join that a whole changed relation asks for, a block with MIN or MAX (it joins
one row a group).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from steadyview.plans.dialect import Piece
from steadyview.plans.lineage import Place
from steadyview.plans.moves import BEGINNING, FOREVER, FROM, REACH, TO, N, carried
from steadyview.plans.operator import Flags, Operator, Rendering
from steadyview.plans.scan import scans

FLAG = "_flag"
SAME_FLAG = f"l.{FLAG} = r.{FLAG}"
_PLACE = "_place"
_STILL = f"{FROM} = {BEGINNING} AND {TO} = {FOREVER}"
_BITS = 62
"""Directions beyond so many share the last bit: more rows are marked than need be."""


@dataclass(frozen=True)
class Reach:
    """A direction's end: its scans, and where the keys that it sent stand.

    `keys`: for each place a FROM item with the keys as `k`; None: all rows were asked for.
    """

    scans: frozenset[int]
    keys: tuple[tuple[Place, str], ...] | None


def flags(hot: Iterable[Operator], block: Operator, reached: Sequence[Reach]) -> Flags:
    """Flags for the hot joins of a block; only ends that contain one of them get a bit.

    A join without scans is left as it is: nobody says what asks for constant rows.
    """
    whole = [r.scans for r in reached if r.keys is None]
    joins = {j: own for j in hot if (own := scans(j)) and not any(own <= w for w in whole)}
    entering = [r for r in reached if any(own <= r.scans for own in joins.values())]
    bit = {id(r): 1 << min(i, _BITS) for i, r in enumerate(entering)}
    bits = {
        join: sum({bit[id(r)] for r in entering if own <= r.scans}) for join, own in joins.items()
    }
    if not any(bits.values()):
        return Flags(bits)
    return Flags(bits, {n: _reach(n, entering, bit) for n in scans(block)})


def _reach(scan: int, entering: Sequence[Reach], bit: dict[int, int]) -> str:
    """The bits of a scan's row."""
    found = ["CAST(0 AS BIGINT)"]
    for reach in entering:
        for place, keys in reach.keys or ():
            if place.scan == scan:
                met = f"c{place.column} IN (SELECT k FROM {keys})"
                found.append(f"CASE WHEN {met} THEN CAST({bit[id(reach)]} AS BIGINT) ELSE 0 END")
    return " | ".join(found)


def left_flagged(rendering: Rendering, part: str, bits: int) -> str:
    """The left part of a join with these bits; each row has its flag."""
    flag = f"CASE WHEN {marked(bits)} THEN 1 ELSE 0 END AS {FLAG}"
    return rendering.part(f"SELECT *, {flag} FROM {part}")


def right_flagged(rendering: Rendering, part: str, columns: Sequence[str], bits: int) -> str:
    """The right part; a row that is marked stands there twice."""
    kept = [*columns, *carried(rendering)]
    return rendering.part(rendering.dialect.exploded(part, kept, stands(marked(bits))))


def partners_flagged(
    rendering: Rendering, part: str, columns: Sequence[str], keys: Sequence[str], bits: int
) -> str:
    """The right part of a join that asks for gaps: the first unchanged row of a key is marked."""
    by = ", ".join([*keys, f"({_STILL})"])
    place = f"ROW_NUMBER() OVER (PARTITION BY {by} ORDER BY {N}) AS {_PLACE}"
    part = rendering.part(f"SELECT *, {place} FROM {part}")
    kept = [*columns, *carried(rendering)]
    mark = f"{marked(bits)} OR {_PLACE} = 1"
    return rendering.part(rendering.dialect.exploded(part, kept, stands(mark)))


def marked(bits: int) -> str:
    """Whether a row of a part changes, or can still meet a change."""
    reaches = f" OR ({REACH} & {bits}) <> 0" if bits else ""
    return f"NOT ({_STILL}){reaches}"


def stands(mark: str) -> list[Piece]:
    """The flags under which a right row stands; none where it is NULL."""
    return [{FLAG: "1"}, {FLAG: f"CASE WHEN {mark} THEN 0 END"}]
