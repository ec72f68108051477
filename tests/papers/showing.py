"""How a script writes rows, queries and the algorithms' variables: in the papers' notation.

A row is (1,2); a joined row shows columns that the view equates once; counts other than 1 stand
behind it as in Figure 5 of Agrawal et al.: (7,8)[2]; what is taken away has a minus: -(2,3).
"""

from __future__ import annotations

from collections.abc import Sequence

from steadyview.maintenance.bag_view_algebra import Handle, JoinedRows
from steadyview.maintenance.c_strobe import CStrobe
from steadyview.maintenance.conventional import Conventional
from steadyview.maintenance.eca import Eca
from steadyview.maintenance.eca_key import EcaKey
from steadyview.maintenance.events import Change, Part
from steadyview.maintenance.nested_sweep import NestedSweep
from steadyview.maintenance.queries import Term
from steadyview.maintenance.strobe import KeyDelete, Strobe
from steadyview.maintenance.sweep import Sweep


class Shown:
    """`at`: the relation's name at each position; `equal`: pairs of columns that are equal."""

    def __init__(self, at: Sequence[str], equal) -> None:
        self._at = at
        self._equal = [tuple(sorted(pair)) for pair in equal]

    def bag(self, handle: Handle) -> str:
        """{(1,2,3), -(4,5,6)[2]}."""
        rows = handle.rows if isinstance(handle, JoinedRows) else handle
        cells = self._cells if isinstance(handle, JoinedRows) else list
        return "{" + ", ".join(sorted(_counted(cells(row), n) for row, n in rows)) + "}"

    def _cells(self, bound) -> list[object]:
        """All columns of a joined row; the second of two equal ones left out."""
        shown = []
        for position, row in enumerate(bound):
            for column, value in enumerate(row or ()):
                twins = [a for a, b in self._equal if b == (position, column)]
                if not any(bound[a] is not None for a, _ in twins):
                    shown.append(value)
        return shown

    def part(self, part: Part[Handle]) -> str:
        """r1 join {(2,3)} join r3, in the order of FROM."""
        known = {min(part.known.bound): self.bag(part.known)}
        steps = {p: self._at[p] if rows is None else self.bag(rows) for p, rows in part.steps}
        return " join ".join(text for _, text in sorted((known | steps).items()))

    def term(self, term: Term[Handle]) -> str:
        """The same of a query's term, with its sign."""
        parts = [self.bag(term.bound[p]) if p in term.bound else r for p, r in enumerate(self._at)]
        return ("" if term.sign > 0 else "- ") + " join ".join(parts)

    def change(self, change: Change[Handle]) -> str:
        """+r2(2,3)."""
        sign = "+" if change.inserted else "-"
        return " ".join(f"{sign}{change.relation.path[-1]}{_counted(r, n)}" for r, n in change.rows)

    def variables(self, algorithm) -> list[str]:
        """The algorithm's variables, as the paper names them."""
        for kind, lines in _VARIABLES:
            if isinstance(algorithm, kind):
                return lines(self, algorithm)
        raise AssertionError(algorithm)

    def _strobe(self, strobe: Strobe[Handle]) -> list[str]:
        queries = [
            f"Q{number} pending {{{', '.join(map(self.change, query.pending))}}}"
            for number, query in strobe.UQS.items()
        ]
        actions = [
            f"key_delete(MV, {self.change(a.deletion)})"
            if isinstance(a, KeyDelete)
            else f"insert(MV, {self.bag(a.answer)})"
            for a in strobe.AL
        ]
        return [
            f"UQS = {{{', '.join(queries)}}}",
            f"AL = <{', '.join(actions)}>",
            f"MV = {self.bag(strobe.MV)}",
        ]

    def _c_strobe(self, c_strobe: CStrobe[Handle]) -> list[str]:
        queries = [
            f"Q{number} = {' + '.join(map(self.term, evaluation.terms))}"
            for number, (evaluation, _) in c_strobe.UQS.items()
        ]
        return [
            f"L = <{', '.join(map(self.change, c_strobe.L))}>",
            f"UQS = {{{', '.join(queries)}}}",
            f"Delta = {'{}' if c_strobe.delta is None else self.bag(c_strobe.delta)}",
            f"MV = {self.bag(c_strobe.MV)}",
        ]

    def _conventional(self, conventional: Conventional[Handle] | EcaKey[Handle]) -> list[str]:
        return [f"MV = {self.bag(conventional.MV)}"]

    def _eca_key(self, eca_key: EcaKey[Handle]) -> list[str]:
        return [f"COLLECT = {self.bag(eca_key.COLLECT)}", f"MV = {self.bag(eca_key.MV)}"]

    def _eca(self, eca: Eca[Handle]) -> list[str]:
        queries = [f"Q{q} = {' '.join(map(self.term, terms))}" for q, terms in eca.UQS.items()]
        collected = [self.bag(answer) for answer in eca.COLLECT]
        return [f"UQS = {{{', '.join(queries)}}}", f"COLLECT = {' + '.join(collected) or '{}'}"]

    def _sweep(self, sweep: Sweep[Handle]) -> list[str]:
        lines = []
        for change in sweep.UpdateMessageQueue:
            parts = change.merged + [walk.known for walk in change.open]
            swept = f", dV = {' and '.join(map(self.bag, parts))}" if parts else ""
            lines.append(f"queue: {self._deltas(change.changed)}{swept}")
        return lines

    def _nested_sweep(self, nested: NestedSweep[Handle]) -> list[str]:
        queued = [self._deltas({position: rows}) for _, position, rows in nested.UpdateMessageQueue]
        return [f"queue: <{', '.join(queued)}>", f"depth = {nested.depth}"]

    def _deltas(self, changed) -> str:
        return ", ".join(f"d{self._at[p]} = {self.bag(rows)}" for p, rows in changed.items())


def _counted(cells: Sequence[object], count: int) -> str:
    times = f"[{abs(count)}]" if abs(count) != 1 else ""
    return f"{'-' if count < 0 else ''}({','.join(map(str, cells))}){times}"


_VARIABLES = (
    (CStrobe, Shown._c_strobe),
    (Strobe, Shown._strobe),
    (Conventional, Shown._conventional),
    (EcaKey, Shown._eca_key),
    (Eca, Shown._eca),
    (Sweep, Shown._sweep),
    (NestedSweep, Shown._nested_sweep),
)
