"""What every operator of a block is: columns out, inputs in, and its rule as text.

Columns have names that are unique in their block (`t0_c1`, `p3_0`), so that an expression is plain
SQL over names and needs no qualifier wherever it stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from steadyview.plans.dialect import Dialect


@dataclass(frozen=True)
class Flags:
    """The joins of a block that leave out pairs of unchanged rows: `flags.py`.

    `hot`: each such join with its bits; `reach`: per scan, which bits a row has, as an expression
    over the input's columns. Without `reach`, no row has any.
    """

    hot: Mapping[Operator, int] = field(default_factory=dict)
    reach: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Rendering:
    """A statement in the making: the engine's words, the name of each input's versions, its parts.

    Each part is used once, by the part above it: inside it, or by a name where the engine likes
    that better.
    """

    dialect: Dialect
    inputs: Mapping[int, str]
    named: list[str] = field(default_factory=list)
    flags: Flags = field(default_factory=Flags)

    def part(self, select: str) -> str:
        """A SELECT as a FROM item."""
        if self.dialect.nested:
            return f"({select})"
        self.named.append(select)
        return f"q{len(self.named)}"

    def statement(self, select: str) -> str:
        """The SELECT over the parts, as one text."""
        named = ",\n".join(f"q{i} AS ({part})" for i, part in enumerate(self.named, 1))
        return f"WITH {named}\n{select}" if named else select


class Operator(Protocol):
    """A relation over the window, made of others."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns."""

    @property
    def operands(self) -> tuple[Operator, ...]:
        """What it is made of."""

    def versions(self, rendering: Rendering) -> str:
        """A SELECT of its columns and of `_n`, `_from`, `_to`.

        At every cn, the bag of its rows is the sum of n over the versions that hold: equal rows may
        have several versions that overlap, but none has a count below one.
        """


def walk(operator: Operator) -> Iterator[Operator]:
    """The operator and everything below it, from above."""
    yield operator
    for operand in operator.operands:
        yield from walk(operand)
