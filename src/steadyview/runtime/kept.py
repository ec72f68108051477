"""How a view is kept, as the catalog remembers it: by which algorithm.

A view that is kept at `complete` has a state at every cn. At any other level its states are those
that its algorithm installed, and only these can be read: between two of them the view delta does
not say what happened when. So a view that changes from such an algorithm to another is built anew.
"""

from __future__ import annotations

import json

from steadyview.catalog import ViewRow
from steadyview.maintenance.algorithms import BATCHED, kind_of
from steadyview.maintenance.fitting import promised
from steadyview.runtime.planning import Planned


def described(plan: Planned) -> str:
    """What the catalog keeps of a plan's algorithm; empty for the default."""
    return json.dumps({"algorithm": plan.algorithm_name}) if plan.forced else ""


def algorithm_of(row: ViewRow) -> str:
    """The algorithm by which the view was kept last."""
    return str(json.loads(row.definition)["algorithm"]) if row.definition else BATCHED


def has_every_state(row: ViewRow) -> bool:
    """Whether the view's state at every cn within its retention can be told."""
    return row.kind == "incremental" and promised(kind_of(algorithm_of(row))) == "complete"


def goes_on(row: ViewRow, plan: Planned) -> bool:
    """Whether what is kept of the view may be continued in the plan's way."""
    return described(plan) == row.definition or row.kind == "recomputed" or has_every_state(row)
