"""A view's plan in the making: its drafts so far, and the block that is being built."""

from __future__ import annotations

from dataclasses import dataclass, field

from steadyview.plans.draft import Draft, Input
from steadyview.views.relational import Scanned

MOST_SCANS = 64


@dataclass
class Block:
    """The inputs of a block, the types of their columns, and names that nothing in it has yet."""

    inputs: list[Input] = field(default_factory=list)
    aliases: list[str] = field(default_factory=list)
    given: dict[str, int] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)

    def scan(self, input_: Input, width: int, alias: str, spare: int = 0) -> Scanned:
        """A further occurrence of an input."""
        self.inputs.append(input_)
        self.aliases.append(alias)
        return Scanned(len(self.inputs) - 1, width, spare)

    def fresh(self, letter: str) -> str:
        """A name: the letter and a number."""
        self.given[letter] = self.given.get(letter, 0) + 1
        return f"{letter}{self.given[letter]}"


@dataclass
class Drafts:
    """The drafts so far; equal ones are one."""

    made: list[Draft] = field(default_factory=list)

    def add(self, draft: Draft) -> int:
        """The draft's place."""
        for place, other in enumerate(self.made):
            if (other.block, other.inputs, other.grouped) == (
                draft.block,
                draft.inputs,
                draft.grouped,
            ):
                return place
        self.made.append(draft)
        return len(self.made) - 1
