"""How far behind readers may be: tables for other programs, and answers.

These are the properties `steadyview.table`, `steadyview.changes` and `steadyview.max_staleness`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

_STALENESS = re.compile(r"(\d+)\s*(s|m|h|d|seconds?|minutes?|hours?|days?)", re.IGNORECASE)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_EVERY = re.compile(r"every\s+(?:(batch)|(\d+)?\s*(second|minute|hour)s?)", re.IGNORECASE)
FORMS = ("every batch", "every 1 minute", "never")


@dataclass(frozen=True)
class Trailing:
    """By so much at most, but for the time that writing takes; None: there is no table.

    `stated`: somebody asked for it. Otherwise a table that takes long is written more seldom.
    """

    by: timedelta | None
    stated: bool = True


DEFAULT = Trailing(timedelta(minutes=1), stated=False)


def trailing(text: str | None) -> Trailing:
    """What the property says; ValueError where it says nothing that is known.

    >>> trailing("every 30 seconds").by
    datetime.timedelta(seconds=30)
    >>> trailing("every batch").by, trailing("never").by
    (datetime.timedelta(0), None)
    """
    if text is None:
        return DEFAULT
    if text.strip().lower() == "never":
        return Trailing(None)
    found = _EVERY.fullmatch(text.strip())
    if found is None or found[2] is not None and int(found[2]) == 0:
        raise ValueError(text)
    if found[1]:
        return Trailing(timedelta(0))
    try:
        return Trailing(timedelta(**{f"{found[3].lower()}s": int(found[2] or 1)}))
    except OverflowError:
        raise ValueError(text) from None


def staleness(text: str) -> timedelta:
    """How old an answer may be; ValueError where that is no length of time.

    >>> staleness("5m"), staleness("0 seconds")
    (datetime.timedelta(seconds=300), datetime.timedelta(0))
    """
    found = _STALENESS.fullmatch(text.strip())
    if found is None:
        raise ValueError(text)
    try:
        return timedelta(**{_UNITS[found[2][0].lower()]: int(found[1])})
    except OverflowError:
        raise ValueError(text) from None
