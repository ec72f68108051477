"""All six properties of section 3 of Beyer et al., in their order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from steadyview.checking.deferred.across_views import across_views
from steadyview.checking.deferred.conviction import Conviction
from steadyview.checking.deferred.history import DeferredHistory
from steadyview.checking.deferred.in_a_view import in_a_view
from steadyview.checking.deferred.lost import lost
from steadyview.checking.deferred.names import (
    ACROSS_VIEWS,
    IN_A_VIEW,
    LOST,
    REAL_TIME,
    REDUNDANT,
    REORDERED,
)
from steadyview.checking.deferred.real_time import real_time
from steadyview.checking.deferred.redundant import redundant
from steadyview.checking.deferred.reordered import reordered

Predicate: TypeAlias = Callable[[DeferredHistory], Conviction | None]
PROPERTIES: Final[Mapping[str, Predicate]] = {
    LOST: lost,
    REDUNDANT: redundant,
    IN_A_VIEW: in_a_view,
    ACROSS_VIEWS: across_views,
    REORDERED: reordered,
    REAL_TIME: real_time,
}


def convictions(history: DeferredHistory) -> tuple[Conviction, ...]:
    """One for each property that the history breaks, in their order."""
    found = (holds_not(history) for holds_not in PROPERTIES.values())
    return tuple(conviction for conviction in found if conviction is not None)
