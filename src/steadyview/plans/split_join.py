"""LEFT, FULL, semi and anti joins and EXISTS as a value: does a row meet another?

For a version l of L let M(l) be the versions of R that it meets, each cut to the time of l. They
cover a part of [from, to) of l; the rest are the *gaps*, when l has no partner:

    LEFT      the joined versions,  and l with NULLs in the gaps
    FULL      LEFT,                 and r with NULLs in the gaps of r
    semi      l while covered
    anti      l in the gaps
    mark      l while covered with TRUE,  in the gaps with FALSE

All five are one outer join on the condition and overlap, then one window per version of L, ordered
by the start of its partners: the gap before a partner reaches from the latest end seen so far to
its start. So the condition may be anything, no key need be unique, and each side is named once.

Linear in L (semi, anti, mark, LEFT). Needed: L at the keys of R's change; R, whole versions, at the
keys of both changes. FULL: both sides at the keys of both.

NOT IN is an anti join on `(x = y) IS NOT FALSE`. A NULL on either side then meets everything, which
is what SQL says of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from steadyview.plans.dialect import Piece
from steadyview.plans.flags import SAME_FLAG, left_flagged, partners_flagged
from steadyview.plans.inner_join import Equality
from steadyview.plans.moves import FROM, REACH, TO, VERSION, N, carried, either, meeting
from steadyview.plans.operator import Operator, Rendering

Kind = Literal["left", "full", "semi", "anti", "mark"]
_ROW, _PIECE = "_row", "_piece"
_TOGETHER, _LEFT_ALONE, _RIGHT_ALONE = range(3)
_BOTH = f"l.{N} IS NOT NULL AND r.{N} IS NOT NULL"
_JOINED = {_PIECE: str(_TOGETHER), N: f"_l{N} * _r{N}", FROM: "_met_from", TO: "_met_to"}
_COVERED = {
    _PIECE: str(_TOGETHER),
    N: f"_l{N}",
    FROM: "GREATEST(_met_from, _l_seen)",
    TO: "_met_to",
}
"""The part of a partner's time that no earlier partner covers."""


@dataclass(frozen=True)
class SplitJoin:
    """A join that keeps rows without a partner, or asks only whether there is one.

    `mark`: the name of the column that says so, of a mark join.
    """

    kind: Kind
    left: Operator
    right: Operator
    equalities: tuple[Equality, ...] = ()
    condition: str | None = None
    mark: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """Left's, and right's where rows are joined."""
        if self.kind in ("left", "full"):
            return self.left.columns + self.right.columns
        return (*self.left.columns, self.mark) if self.kind == "mark" else self.left.columns

    @property
    def operands(self) -> tuple[Operator, ...]:
        """The two sides."""
        return (self.left, self.right)

    def versions(self, rendering: Rendering) -> str:
        """Outer join, window, pieces."""
        met = rendering.part(self._met(rendering))
        split = rendering.part(self._windowed(met))
        kept = [c for side in self._sides for c in side.columns]
        listed = [*self._outputs(), *VERSION]
        if rendering.flags.reach:
            kept += [f"_l{REACH}", f"_r{REACH}"]
            listed.append(self._reach())
        rows = rendering.part(rendering.dialect.exploded(split, kept, self._pieces()))
        return f"SELECT {', '.join(listed)} FROM {rows} WHERE {FROM} < {TO}"

    def _reach(self) -> str:
        """The bits of what comes out: of a padded row perhaps more than it needs."""
        left, right = (f"COALESCE(_{side}{REACH}, 0)" for side in ("l", "r"))
        return f"{either(left, right) if len(self._sides) > 1 else left} AS {REACH}"

    @property
    def _sides(self) -> tuple[Operator, ...]:
        """Those whose columns come out."""
        return (self.left, self.right) if self.kind in ("left", "full") else (self.left,)

    def _met(self, rendering: Rendering) -> str:
        """Every version of L with its partners, or with none; FULL: those of R without as well."""
        full = self.kind == "full"
        keys = [e.sql for e in self.equalities]
        left = self._numbered(self.left, rendering)
        right = (
            self._numbered(self.right, rendering)
            if full
            else rendering.part(self.right.versions(rendering))
        )
        if self in rendering.flags.hot:
            bits = rendering.flags.hot[self]
            left = left_flagged(rendering, left, bits)
            by = [e.right for e in self.equalities]
            right = partners_flagged(rendering, right, self.right.columns, by, bits)
            keys.append(SAME_FLAG)
        on = meeting("l", "r", keys, self.condition)
        listed = "".join(f"{c}, " for side in self._sides for c in side.columns)
        numbers = f"l.{_ROW} AS _l_row, " + (f"r.{_ROW} AS _r_row, " if full else "")
        times = ", ".join(f"{s}.{v} AS _{s}{v}" for s in ("l", "r") for v in carried(rendering))
        return (
            f"SELECT {listed}{numbers}{times}, "
            f"CASE WHEN {_BOTH} THEN GREATEST(l.{FROM}, r.{FROM}) END AS _met_from, "
            f"CASE WHEN {_BOTH} THEN LEAST(l.{TO}, r.{TO}) END AS _met_to "
            f"FROM {left} l {'FULL' if full else 'LEFT'} JOIN {right} r ON {on}"
        )

    def _numbered(self, side: Operator, rendering: Rendering) -> str:
        rows = rendering.part(side.versions(rendering))
        return rendering.part(f"SELECT *, {rendering.dialect.row_number} AS {_ROW} FROM {rows}")

    def _windowed(self, met: str) -> str:
        """Beside each partner: how far the version was covered before, and whether it is last."""
        columns = []
        for side in ("l", "r") if self.kind == "full" else ("l",):
            window = f"PARTITION BY _{side}_row ORDER BY _met_from, _met_to"
            before = f"{window} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
            columns.append(
                f"COALESCE(MAX(_met_to) OVER ({before}), _{side}{FROM}) AS _{side}_seen, "
                f"LEAD(_met_from) OVER ({window}) IS NULL AS _{side}_last"
            )
        return f"SELECT *, {', '.join(columns)} FROM {met}"

    def _pieces(self) -> list[Piece]:
        if self.kind == "semi":
            return [_COVERED]
        if self.kind == "anti":
            return _gaps("l", _LEFT_ALONE)
        if self.kind == "mark":
            return [_COVERED, *_gaps("l", _LEFT_ALONE)]
        if self.kind == "left":
            return [_JOINED, *_gaps("l", _LEFT_ALONE)]
        return [_JOINED, *_gaps("l", _LEFT_ALONE), *_gaps("r", _RIGHT_ALONE)]

    def _outputs(self) -> list[str]:
        """The columns, NULL where the piece lacks the side."""
        if self.kind == "mark":
            return [*self.left.columns, f"{_PIECE} = {_TOGETHER} AS {self.mark}"]
        if self.kind in ("semi", "anti"):
            return list(self.left.columns)
        left = [_unless(_RIGHT_ALONE, c) for c in self.left.columns]
        right = [_unless(_LEFT_ALONE, c) for c in self.right.columns]
        return [*(left if self.kind == "full" else self.left.columns), *right]


def _unless(piece: int, column: str) -> str:
    return f"CASE WHEN {_PIECE} <> {piece} THEN {column} END AS {column}"


def _gaps(side: str, piece: int) -> list[Piece]:
    """Before a partner, and after the last one; all of the time where there is no partner."""
    last = f"_{side}_last AND _met_to IS NOT NULL"
    return [
        {
            _PIECE: str(piece),
            N: f"_{side}{N}",
            FROM: f"_{side}_seen",
            TO: f"COALESCE(_met_from, _{side}{TO})",
        },
        {
            _PIECE: str(piece),
            N: f"_{side}{N}",
            FROM: f"CASE WHEN {last} THEN GREATEST(_{side}_seen, _met_to) END",
            TO: f"_{side}{TO}",
        },
    ]
