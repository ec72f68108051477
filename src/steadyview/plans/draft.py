"""A view's plan before its types are known: what reading its SQL gives.

A draft is one node to be: a block over inputs, perhaps grouped. The drafts of a view stand in an
order in which each reads only earlier ones, relations and other views; the last one is the view.
What a node shows are columns `c0`, `c1`, ...: a relation's columns have such names too, so that a
scan reads either in the same way. The names that people know stand beside.
"""

from __future__ import annotations

from dataclasses import dataclass

from steadyview.changes import RelationName
from steadyview.plans.aggregates import Grouped
from steadyview.plans.operator import Operator


@dataclass(frozen=True)
class RelationInput:
    """A relation of a source; its columns by number as in its recorded schema."""

    relation: RelationName


@dataclass(frozen=True)
class DraftInput:
    """An earlier draft of the same view, by its place."""

    place: int


@dataclass(frozen=True)
class ViewInput:
    """Another view of the project, by its name."""

    view: str


Input = RelationInput | DraftInput | ViewInput


@dataclass(frozen=True)
class Draft:
    """A node to be. `inputs[n]` is what scan number n of the block reads.

    Without `grouped`, the block's columns are `c0`, `c1`, ...; with it, `grouped.outputs` are.
    `says` is what it stands for, in a few words of SQL, for people.
    """

    block: Operator
    inputs: tuple[Input, ...]
    grouped: Grouped | None = None
    says: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of what is shown."""
        if self.grouped is not None:
            return tuple(name for name, _ in self.grouped.outputs)
        return self.block.columns


@dataclass(frozen=True)
class PlanDraft:
    """All drafts of a view, the view itself last, and what its columns are called."""

    drafts: tuple[Draft, ...]
    names: tuple[str, ...]
