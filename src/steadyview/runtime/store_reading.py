"""Reading records by key: one as it is now, or several as of one cn. No Spark, no catalog, no run.

A record's newest version may be ahead of the store's watermark, and others behind it; several are
read at the watermark, in one statement of the store, each in the version that was the newest then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from steadyview.catalog import from_us
from steadyview.catalog.clock import Clock
from steadyview.errors import ConfigError, StoreUnavailable
from steadyview.nearest import nearest_or_all
from steadyview.serving.contract import Position, Reading, RecordStore, Version
from steadyview.serving.json_texts import exact, key_text
from steadyview.serving.layout import RecordLayout, Records

_TRIES = 20


@dataclass(frozen=True)
class ServedRecord:
    """A record: all columns in `values`, `cn` the last commit that changed it.

    `as_of`: up to which cn the store has everything, `time` when that was committed, `age_seconds`
    how long ago. Of a record that is kept straight from the update log there is a `signature`, the
    last entry of each log stream that it reflects, in place of both.
    """

    view: str
    key: Mapping[str, Any]
    values: Mapping[str, Any]
    cn: int | None
    as_of: int | None
    time: datetime
    age_seconds: float
    signature: Mapping[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@dataclass(frozen=True)
class ServedRecords:
    """Records as of one cn, in the order asked for; None where there is none of that key."""

    view: str
    cn: int
    time: datetime
    age_seconds: float
    records: Sequence[ServedRecord | None]


class ServedStore:
    """One store of the project, for readers in one thread; close it, or the warehouse."""

    def __init__(self, store: RecordStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._known: dict[str, Records] = {}

    def get(self, view: str, *key: Any) -> ServedRecord | None:
        """The newest version of one record; None: there is none of that key."""
        if self._records(view).layout.sums:
            return self._get_from_log(view, key)
        reading, layout = self._read(view, [key])
        (found,) = reading.found
        return self._record(layout, key, found.now, reading.position)

    def get_many(self, view: str, keys: Iterable[Any]) -> ServedRecords:
        """Records of one moment; a key of one column may stand alone, others are tuples."""
        if self._records(view).layout.sums:
            raise ConfigError(
                f'records of view "{view}" cannot be read as of one commit',
                detail="they are kept straight from the update log, each for itself",
                hint="get them one by one, or serve the view from its changes",
            )
        listed = [key if isinstance(key, tuple | list) else (key,) for key in keys]
        reading, layout = self._read(view, listed)
        position = reading.position
        records = [
            self._record(layout, key, found.at(position.entry), position)
            for key, found in zip(listed, reading.found, strict=True)
        ]
        time, age = self._age(position)
        return ServedRecords(layout.view, position.entry, time, age, records)

    def key_types(self, view: str) -> Sequence[tuple[str, str]]:
        """The columns of a view's key, with their types."""
        return self._records(view).layout.keys

    def close(self) -> None:
        """Give its connection back."""
        self._store.close()

    def _read(self, view: str, keys: Sequence[Sequence[Any]]) -> tuple[Reading, RecordLayout]:
        for _ in range(_TRIES):
            records = self._records(view)
            if any(len(key) != len(records.layout.key) for key in keys):
                # it may be served by another key since then
                self._known.clear()
                records = self._records(view)
            texts = [_text(records.layout, key) for key in keys]
            reading = self._store.read(records, texts)
            if reading is not None:
                return reading, records.layout
            # another incarnation is read since then
            self._known.clear()
        raise StoreUnavailable(f'view "{view}" is written anew all the time', hint="try again")

    def _get_from_log(self, view: str, key: Sequence[Any]) -> ServedRecord | None:
        for _ in range(_TRIES):
            records = self._records(view)
            found = self._store.shown(records, [_text(records.layout, key)])
            # a way that changed has other records
            if found is not None and records.layout.sums:
                break
            self._known.clear()
        else:
            raise StoreUnavailable(f'view "{view}" is written anew all the time', hint="try again")
        (record,) = found
        if record.values is None:
            return None
        positions = self._store.positions(records)
        streams = [p for s, p in positions.items() if "/" in s]
        time, age = self._age(min(streams, key=lambda p: p.time, default=Position(0, 0, 0)))
        pairs = zip(records.layout.keys, key, strict=True)
        by_name = {name: exact(value, type_) for (name, type_), value in pairs}
        signature = dict(record.signature)
        return ServedRecord(
            records.view, by_name, record.values, None, None, time, age, signature
        )

    def _records(self, view: str) -> Records:
        known = self._known.get(view)
        if known is None:
            found = self._store.find(view)
            if found is None or found.records is None:
                raise self._not_served(view)
            known = self._known[view] = found.records
        return known

    def _not_served(self, view: str) -> ConfigError:
        there = {v.view for v in self._store.views() if v.records is not None}
        way = nearest_or_all(view, sorted(there)) or "it serves none yet: steadyview run fills it"
        return ConfigError(f'store "{self._store.name}" serves no view "{view}"', hint=way)

    def _record(
        self, layout: RecordLayout, key: Sequence[Any], version: Version | None, position: Position
    ) -> ServedRecord | None:
        if version is None or version.values is None:
            return None
        pairs = zip(layout.keys, key, strict=True)
        by_name = {name: exact(value, type_) for (name, type_), value in pairs}
        values = {n: by_name[n] if n in by_name else version.values[n] for n, _ in layout.columns}
        time, age = self._age(position)
        return ServedRecord(layout.view, by_name, values, version.cn, position.entry, time, age)

    def _age(self, position: Position) -> tuple[datetime, float]:
        age = max(self._clock.now_us() - position.time, 0) / 1_000_000
        return from_us(position.time), age


def _text(layout: RecordLayout, key: Sequence[Any]) -> str:
    if len(key) != len(layout.key):
        raise ConfigError(
            f'a key of view "{layout.view}" has {len(layout.key)} values, not {len(key)}',
            hint=f"give them in this order: {', '.join(layout.key)}",
        )
    return key_text(key, [type_ for _, type_ in layout.keys])
