"""From when until when a view's rows are what they are: the valid time of a state.

For the state at c of a view whose changes are at hand up to q, with n the last admitted commit:

    [ last change <= c,  min(first change in (c, q], first commit > q of a source it reads, n + 1) )

All its states in there are the same rows, so several views go together where theirs overlap. A gap
ends it on either side: what the view was in between is not known, even if it came back. A range
that was compressed begins with the first change in it and ends with the last, so it costs nothing.
Where changes are not known, commits of sources stand for them: safe, and shorter. A dead source
ends nothing here: how old an answer may be is another question (`freshness`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from steadyview.catalog import Catalog, ViewRow, from_us
from steadyview.errors import OutsideRetention
from steadyview.warehouse.change_rows import changed_near
from steadyview.warehouse.view_store import ViewStore


@dataclass(frozen=True)
class Validity:
    """The cns from `first` up to, and without, `end`; None: all that is admitted by now."""

    first: int
    end: int | None

    def last(self, newest: int) -> int:
        """The last cn of these, `newest` being the last one admitted.

        >>> Validity(3, 7).last(20), Validity(3, None).last(20)
        (6, 20)
        """
        return newest if self.end is None else self.end - 1


@dataclass(frozen=True)
class ValidTime:
    """The same as an answer tells it, with commit times; `until` None: it is valid still."""

    first: int
    end: int | None
    since: datetime | None
    until: datetime | None

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "first_cn": self.first,
            "end_cn": self.end,
            "since": _iso(self.since),
            "until": _iso(self.until),
        }


def validity(
    catalog: Catalog, store: ViewStore, row: ViewRow, upto: int, sources: Collection[str], cn: int
) -> Validity:
    """Of the view's state at cn; its changes are at hand up to `upto`, it reads these sources."""
    first, end = cn, None
    if row.kind == "incremental":
        last, changed = changed_near(store, row.oldest_cn, cn, upto)
        # after the files, which may say less
        before, after = catalog.gaps.beside(row.id, cn)
        first = max(row.oldest_cn if last is None else last, 0 if before is None else before.high)
        ends = [changed, None if after is None else after.low + 1]
        end = min((c for c in ends if c is not None), default=None)
    if end is None:
        behind = upto if row.kind == "incremental" else cn
        committed = (catalog.commits.first_after(source, behind) for source in sources)
        end = min((c for c in committed if c is not None), default=None)
    return Validity(first, end)


def overlap(found: Iterable[Validity]) -> Validity | None:
    """What all of them have in common.

    >>> overlap([Validity(1, 5), Validity(3, None)]), overlap([Validity(1, 3), Validity(3, 9)])
    (Validity(first=3, end=5), None)
    """
    found = list(found)
    first = max(v.first for v in found)
    end = min((v.end for v in found if v.end is not None), default=None)
    return None if end is not None and end <= first else Validity(first, end)


def told(catalog: Catalog, found: Validity) -> ValidTime:
    """With times."""
    return ValidTime(found.first, found.end, _time(catalog, found.first), _time(catalog, found.end))


def _iso(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat(timespec="microseconds")


def _time(catalog: Catalog, cn: int | None) -> datetime | None:
    try:
        return None if cn is None else from_us(catalog.commits.time_of(cn))
    except OutsideRetention:
        return None
