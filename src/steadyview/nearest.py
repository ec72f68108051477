"""The known name that a misspelt one was probably meant to be: one way for all rooms.

Claim: case never counts. A name that differs only in what stands before its last dot ("orders",
"sale.orders") is nearer than any that is spelled another way, and no prefix makes others near.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_FAR = 0.6
_AS_NEAR = 0.1


def nearest(name: str, known: Iterable[str], far: float = _FAR) -> list[str]:
    """What may have been meant, best first: one name, or several that are as near; none if far.

    `far`: names less alike than this (1 is the same) are not meant.

    >>> nearest("sales.order", ["sales.orders", "sales.order_lines"])
    ['sales.orders']
    >>> nearest("orders", ["sales.orders", "sale.orders", "crm.people"])
    ['sale.orders', 'sales.orders']
    """
    likeness = {k: _likeness(name.lower(), k.lower()) for k in known}
    ends = {k: _likeness(_end(name), _end(k)) for k in likeness}
    same_end = {k: like for k, like in likeness.items() if ends[k] == 1}
    close = same_end or {k: like for k, like in likeness.items() if min(like, ends[k]) >= far}
    best = max(close.values(), default=0.0)
    return sorted((k for k in close if close[k] >= best - _AS_NEAR), key=lambda k: (-close[k], k))


def did_you_mean(name: str, known: Iterable[str], far: float = _FAR) -> str | None:
    """A hint that names what may have been meant, None if nothing is near.

    >>> did_you_mean("Sales.order", ["sales.orders", "crm.customers"])
    'did you mean "sales.orders"?'
    """
    near = [f'"{k}"' for k in nearest(name, known, far)]
    return f"did you mean {' or '.join(near)}?" if near else None


def nearest_or_all(name: str, known: Iterable[str]) -> str | None:
    """A hint that names the nearest, or where nothing is near all there are; None if none.

    >>> nearest_or_all("x", ["sales", "crm"])
    'choose one of: crm, sales'
    """
    known = sorted(set(known))
    listed = f"choose one of: {', '.join(known)}" if known else None
    return did_you_mean(name, known) or listed


def _likeness(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one, other).ratio()


def _end(name: str) -> str:
    return name.lower().rpartition(".")[2]
