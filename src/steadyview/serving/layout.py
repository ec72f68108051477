"""The records of a view: their columns, which of them are the key, and what their table is called.

Every rebuild of a view in a store writes records of another *incarnation*, in a table of its own
name. So a writer of an older one, which may live on for seconds after it was told to end, reaches
nothing that is read.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any

KEY, CN, DEAD = "_key", "_cn", "_dead"
"""Of a record: its key as one text; its signature, the cn of its last change; whether it is gone.
"""
WAS = "_was_"
"""Before the names of a record's previous version."""
ENTRIES, ROWS = "_entries", "_rows"
"""Of a record that is kept from the update log: its signature, one entry per stream; its rows."""
CHANGES = "changes"
"""The one stream of records that are kept from a view's change table; its entries are cns."""
_LONGEST = 40

Columns = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class RecordLayout:
    """What a view's records look like. `columns` are those of its SELECT, with their Spark types.

    `sums`: hidden columns that changes are added to, of records that are kept from the update log.
    They include `_rows`; a record is gone when that is 0. Without sums the records are those of a
    change table: post-images, with one previous version each.

    `shown`: the visible columns besides the key, in SQL over the sums; `there`: when a record is
    shown, likewise. Without them records have the view's columns themselves. `log`: of what decides
    which records there are and through which stream each entry comes.
    """

    view: str
    columns: Columns
    key: tuple[str, ...]
    sums: Columns = ()
    shown: Columns = ()
    there: str = ""
    log: str = ""

    @property
    def keys(self) -> Columns:
        """The columns of the key, in its order."""
        types = dict(self.columns)
        return tuple((name, types[name]) for name in self.key)

    @property
    def values(self) -> Columns:
        """The other columns."""
        return tuple((name, type_) for name, type_ in self.columns if name not in self.key)

    @property
    def stored(self) -> Columns:
        """The columns of a record's table, besides the store's own."""
        known = self.keys if self.there else self.columns
        names = {name for name, _ in known}
        return (*known, *((n, t) for n, t in self.sums if n not in names))

    def to_json(self) -> str:
        """As one text."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> RecordLayout:
        """The inverse."""
        found: dict[str, Any] = json.loads(text)
        columns, sums, shown = (
            tuple((n, t) for n, t in found.get(part, ())) for part in ("columns", "sums", "shown")
        )
        there, log = found.get("there", ""), found.get("log", "")
        return RecordLayout(found["view"], columns, tuple(found["key"]), sums, shown, there, log)


@dataclass(frozen=True)
class Records:
    """One incarnation of a view's records: `node` is the id that the catalog has for the view."""

    view: str
    incarnation: int
    node: int
    layout: RecordLayout

    @property
    def name(self) -> str:
        """What their table is called."""
        return f"{short_name(self.view)}__{self.incarnation}"


def short_name(view: str) -> str:
    """The view's name as every store takes it: a long one is cut, with a digest behind.

    >>> short_name("revenue_by_region")
    'revenue_by_region'
    """
    if len(view.encode()) <= _LONGEST:
        return view
    digest = hashlib.sha256(view.encode()).hexdigest()[:8]
    return f"{view.encode()[: _LONGEST - 9].decode(errors='ignore')}_{digest}"


def taken_names(columns: Columns) -> list[str]:
    """The columns whose names the store's own columns need.

    >>> taken_names((("region", "STRING"), ("_was_region", "STRING"), ("_Key", "INT")))
    ['_was_region', '_Key']
    """
    own = (KEY, CN, DEAD, ENTRIES, ROWS)
    return [n for n, _ in columns if n.lower() in own or n.lower().startswith(WAS)]
