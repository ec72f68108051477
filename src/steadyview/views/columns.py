"""What column names mean inside one SELECT, in Spark's rules.

A scope lists the visible columns of FROM in order. A name is found without regard to case; its
qualifier may be any end of the relation's own (`orders.id`, `sales.orders.id`). Of a USING join one
key is visible by its name alone, the others only by their qualifiers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp


@dataclass(frozen=True)
class VisibleColumn:
    """A column in scope and the bound expression it stands for.

    `hidden`: seen by its qualifier only. `unsupported` says why it cannot be used.
    """

    qualifier: tuple[str, ...]
    name: str
    value: exp.Expression
    hidden: bool = False
    unsupported: str | None = None

    def is_called(self, parts: tuple[str, ...]) -> bool:
        """Whether the dotted name means this column."""
        *qualifier, name = parts
        if name.lower() != self.name.lower():
            return False
        return self.is_of(tuple(qualifier)) if qualifier else not self.hidden

    def is_of(self, qualifier: tuple[str, ...]) -> bool:
        """Whether the relation this column belongs to may be called `qualifier`."""
        own = [part.lower() for part in self.qualifier]
        return own[-len(qualifier) :] == [part.lower() for part in qualifier]


@dataclass(frozen=True)
class Scope:
    """The columns of FROM, in order."""

    columns: tuple[VisibleColumn, ...] = ()

    def find(self, parts: tuple[str, ...]) -> list[VisibleColumn]:
        """All columns the dotted name may mean."""
        return [c for c in self.columns if c.is_called(parts)]

    def star(self, qualifier: tuple[str, ...]) -> list[VisibleColumn]:
        """The columns of `*`, or of `qualifier.*`, in Spark's order."""
        if not qualifier:
            return [c for c in self.columns if not c.hidden]
        own = [c for c in self.columns if c.is_of(qualifier)]
        return sorted(own, key=lambda c: not c.hidden)

    def beside(self, other: Scope) -> Scope:
        """Both scopes' columns."""
        return Scope(self.columns + other.columns)

    def renamed(self, qualifier: tuple[str, ...], named: tuple[str, ...]) -> Scope:
        """The visible columns under a new qualifier and, if any are given, new names."""
        kept = self.star(())
        new = named or tuple(c.name for c in kept)
        pairs = zip(kept, new, strict=True)
        return Scope(tuple(replace(c, qualifier=qualifier, name=n) for c, n in pairs))
