"""One occurrence of an input: its versions as they were made.

    V(R)  =  true versions of the used columns: one at a time per row

An input is a relation of a source, another view, or a hidden node. How complete its versions must
be depends on the operators above: `links.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from steadyview.plans.moves import REACH, VERSION
from steadyview.plans.operator import Operator, Rendering, walk


@dataclass(frozen=True)
class Scan:
    """Occurrence `number` of an input, with the input's columns that are used, by number."""

    number: int
    used: tuple[int, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """`t{number}_c{column}`."""
        return tuple(column(self.number, i) for i in self.used)

    @property
    def operands(self) -> tuple[Operator, ...]:
        """Nothing."""
        return ()

    def versions(self, rendering: Rendering) -> str:
        """The input's versions under the block's names."""
        listed = "".join(f"c{i} AS {column(self.number, i)}, " for i in self.used)
        version = list(VERSION)
        if rendering.flags.reach:
            version.append(f"{rendering.flags.reach[self.number]} AS {REACH}")
        return f"SELECT {listed}{', '.join(version)} FROM {rendering.inputs[self.number]}"


def column(occurrence: int, number: int) -> str:
    """What a block calls a column of an occurrence.

    >>> column(0, 2)
    't0_c2'
    """
    return f"t{occurrence}_c{number}"


def scans(operator: Operator) -> frozenset[int]:
    """The numbers of all scans below."""
    return frozenset(o.number for o in walk(operator) if isinstance(o, Scan))
