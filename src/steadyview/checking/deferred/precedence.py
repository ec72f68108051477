"""x < y: which transactions must not be shown the other way round.

    one database   x ended before y began, or they share an item and x committed first
    per source     x is an earlier commit of y's source, or they share an item and x committed first

The first is the order of Beyer et al., section 2. The second is what commit numbers promise: two
databases without common transactions have no order, even where one ended before the other began.
Each gives the reason as data, for the sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from steadyview.checking.deferred.history import DeferredTransaction

ONE_DATABASE: Final = "one database"
PER_SOURCE: Final = "per source"


def precedes(
    order: str, x: DeferredTransaction, y: DeferredTransaction
) -> Mapping[str, Any] | None:
    """Why x < y; None where it is not so."""
    if x is y:
        return None
    shared = x.items & y.items
    if shared and x.commit_time < y.commit_time:
        return {"because": "item", "item": min(shared)}
    return _ORDERS[order](x, y)


def _ended_first(x: DeferredTransaction, y: DeferredTransaction) -> Mapping[str, Any] | None:
    return {"because": "ended", "end": x.end, "begin": y.begin} if x.end < y.begin else None


def _same_source(x: DeferredTransaction, y: DeferredTransaction) -> Mapping[str, Any] | None:
    if x.source != y.source or x.seq >= y.seq:
        return None
    return {"because": "source", "source": x.source, "seq": (x.seq, y.seq)}


_Order = Callable[["DeferredTransaction", "DeferredTransaction"], Mapping[str, Any] | None]
_ORDERS: Final[Mapping[str, _Order]] = {ONE_DATABASE: _ended_first, PER_SOURCE: _same_source}
