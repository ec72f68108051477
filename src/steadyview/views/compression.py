"""Which single moments of a view's past are given up: the property `steadyview.compress`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

KEEPS = ("hour", "day")
"""The periods whose ends may be kept."""
COMPRESSIONS = ("hour after 1 day", "day after 30 days")
"""Examples of the property."""
_FORM = re.compile(r"(hour|day)\s+after\s+(\d+)\s*(minute|hour|day|week)s?", re.IGNORECASE)


@dataclass(frozen=True)
class Compression:
    """Of changes older than `after` the moments at the ends of periods are kept, `keep` long."""

    keep: str
    after: timedelta


def compression(text: str) -> Compression:
    """What the property says; ValueError where it says nothing that is known.

    >>> compression("hour after 1 day")
    Compression(keep='hour', after=datetime.timedelta(days=1))
    """
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise ValueError(text)
    try:
        after = timedelta(**{f"{found[3].lower()}s": int(found[2])})
    except OverflowError:
        raise ValueError(text) from None
    return Compression(found[1].lower(), after)
