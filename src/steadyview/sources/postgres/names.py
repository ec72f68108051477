"""What the slot and the publication of a source are called, and whether they are ours.

A slot says nothing about who made it, so its default name carries the warehouse; one whose name was
set by hand is ours if capture went by it before. A publication is for reading only and may be
shared: its default name is the source's, and who made it stands in its comment.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from steadyview.errors import SourceRefused, SteadyviewError
from steadyview.sources.contract import Owner
from steadyview.sources.postgres.proof import Proof, before_proofs

_LONGEST = 63


@dataclass(frozen=True)
class Names:
    """What the slot and the publication of a source are called.

    `ours`: the slot, if there is one, was made by this warehouse. `unsigned`: set up before the
    publications that we make had our signature. `proof`: the names that capture went by so far.
    """

    slot: str
    publication: str
    ours: bool
    unsigned: bool
    proof: Proof | None

    @staticmethod
    def chosen(source: str, settings: Mapping[str, Any], owner: Owner) -> Names:
        """As set, as before, or by default; before there were proofs one name was for both."""
        known, older = Proof.parse(owner.proof), before_proofs(owner.proof)
        given = settings.get("slot")
        default = plain_name(source) if older else own_name(source, owner.warehouse)
        name = str(given or (known.slot if known else default))
        published = settings.get("publication") or (known.publication if known else None)
        if published is None:
            published = name if older else plain_name(source)
        return Names(name, str(published), not given or older or known is not None, older, known)

    @property
    def remembered(self) -> Names:
        """Those that capture went by, where it did."""
        if self.proof is None:
            return self
        return replace(self, slot=self.proof.slot, publication=self.proof.publication)

    def obstacles(self, source: str) -> list[SteadyviewError]:
        """Names that were changed while something is still captured through the old ones."""
        was = self.remembered
        changed = {
            "slot": (was.slot, self.slot),
            "publication": (was.publication, self.publication),
        }
        return [
            SourceRefused(
                f'source "{source}" is captured through {what} "{old}", but is set to "{new}"',
                hint=f"set it back, or run: steadyview source remove {source}, then run again",
            )
            for what, (old, new) in changed.items()
            if old != new
        ]


def plain_name(source: str) -> str:
    """The default name of the publication; once of the slot, too.

    >>> plain_name("Sales EU")
    'steadyview_sales_eu'
    """
    return ("steadyview_" + _folded(source))[:_LONGEST]


def own_name(source: str, warehouse: str) -> str:
    """The default name of the slot: no other source of any warehouse has it.

    >>> own_name("sales", "0a1b2c3d")
    'steadyview_sales_0a1b2c3d'
    """
    end = f"_{warehouse}"
    if _folded(source) != source or len(plain_name(source) + end) > _LONGEST:
        end = f"_{hashlib.sha256(source.encode()).hexdigest()[:8]}{end}"
    return plain_name(source)[: _LONGEST - len(end)] + end


def _folded(source: str) -> str:
    return re.sub(r"[^a-z0-9_]", "_", source.lower())
