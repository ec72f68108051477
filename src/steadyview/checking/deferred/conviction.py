"""That a history breaks a property: which one, a witness, and a sentence about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from steadyview.checking.deferred.sentences import sentence


@dataclass(frozen=True)
class Conviction:
    """`breaks` is the property.

    `witness` is data that can be checked against the history without trusting the search: `step`
    (and `other`) are numbers of apply steps, `view` and `target` what they say.
    """

    breaks: str
    witness: Mapping[str, Any]

    @property
    def sentence(self) -> str:
        """What a person can check."""
        return sentence(self.breaks, self.witness)

    def to_dict(self) -> dict[str, Any]:
        """The whole as plain data."""
        return {
            "property": self.breaks,
            "witness": dict(self.witness),
            "sentence": self.sentence,
        }
