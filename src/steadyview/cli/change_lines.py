"""Changes of a view as text: one line per row, and one where a commit ends.

json       {"cn": 7, "time": ..., "count": -1, "row": {...}}, then {"cn": 7, "end": true}
csv        kind (state, change, end, reset), cn, time, count, then the view's columns
debezium   envelopes of Debezium's JSON: op "r" of a state, "d" and "c" of changes; no keys are
           known, so a changed row is a "d" and a "c"; then {"status": "END", "id": ...}
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from steadyview.cli.values import csv_field, iso_time, json_value

if TYPE_CHECKING:
    from steadyview.runtime.subscribing import Delivery

_OWN = 3
"""The columns behind the view's own: `_count`, `_cn`, `_time`."""
Lines = Callable[["Delivery"], Iterator[str]]


class ChangeFormat(StrEnum):
    """How changes are printed."""

    json = "json"
    csv = "csv"
    debezium = "debezium"


def lines(format: ChangeFormat, view: str, columns: list[str]) -> Lines:
    """What turns each delivery into lines; of csv the first of all names the columns."""
    if format is ChangeFormat.csv:
        return _csv(columns)
    return _json if format is ChangeFormat.json else _debezium(view)


def _json(delivery: Delivery) -> Iterator[str]:
    time = iso_time(delivery.time)
    if delivery.reset:
        yield _text({"reset": True, "cn": delivery.cn, "time": time, "epoch": delivery.epoch})
    for names, records, cn in _commits(delivery):
        for *values, count, _, at in records:
            row = dict(zip(names, map(json_value, values), strict=True))
            facts = {"cn": cn, "time": iso_time(at), "count": count, "row": row}
            yield _text(facts | ({"state": True} if delivery.state else {}))
        after = delivery.ranges.get(cn)
        compressed = {} if after is None else {"compressed": [after, cn]}
        yield _text({"cn": cn, "end": True, **compressed})


def _csv(columns: list[str]) -> Lines:
    heading = [["kind", "cn", "time", "count", *columns]]

    def told(delivery: Delivery) -> Iterator[str]:
        while heading:
            yield _record(heading.pop())
        empty: list[object] = [None] * len(columns)
        if delivery.reset:
            yield _record(["reset", delivery.cn, delivery.time, None, *empty])
        kind = "state" if delivery.state else "change"
        for _, records, cn in _commits(delivery):
            for *values, count, _, at in records:
                yield _record([kind, cn, at, count, *values])
            yield _record(["end", cn, None, None, *empty])

    return told


def _debezium(view: str) -> Lines:
    def told(delivery: Delivery) -> Iterator[str]:
        if delivery.reset:
            yield _text({"op": "t", "source": _source(view, delivery, delivery.cn)})
        for names, records, cn in _commits(delivery):
            number = 0
            for *values, count, _, at in records:
                row = dict(zip(names, map(json_value, values), strict=True))
                op = "r" if delivery.state else "c" if count > 0 else "d"
                before, after = (row, None) if op == "d" else (None, row)
                envelope = {"before": before, "after": after, "op": op}
                envelope["source"] = _source(view, delivery, cn)
                envelope["ts_us"] = int(at.timestamp()) * 1_000_000 + at.microsecond
                for _ in range(abs(count)):
                    yield _text(envelope)
                number += abs(count)
            yield _text({"status": "END", "id": str(cn), "event_count": number})

    return told


def _source(view: str, delivery: Delivery, cn: int) -> dict[str, Any]:
    snapshot = "true" if delivery.state else "false"
    return {"connector": "steadyview", "table": view, "cn": cn, "snapshot": snapshot}


def _commits(delivery: Delivery) -> Iterator[tuple[list[str], Iterator[tuple[Any, ...]], int]]:
    """The records of each commit, with the names of the view's columns; of a state, of its cn."""
    if delivery.state:
        yield from _state(delivery)
        return
    for table in delivery.tables():
        names = table.column_names[:-_OWN]
        cns = table["_cn"].to_numpy()
        start = 0
        while start < len(cns):
            cn = int(cns[start])
            stop = start + int((cns[start:] == cn).sum())
            yield names, _records(table.slice(start, stop - start)), cn
            start = stop


def _state(
    delivery: Delivery,
) -> Iterator[tuple[list[str], Iterator[tuple[Any, ...]], int]]:
    tables = delivery.tables()
    first = next(tables, None)
    names = [] if first is None else first.column_names[:-_OWN]

    def records() -> Iterator[tuple[Any, ...]]:
        if first is not None:
            yield from _records(first)
        for table in tables:
            yield from _records(table)

    yield names, records(), delivery.cn


def _records(table: Any) -> Iterator[tuple[Any, ...]]:
    # Batch by batch: Python values of all of it at once would take many times its memory.
    for batch in table.to_batches(max_chunksize=5_000):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _text(facts: dict[str, Any]) -> str:
    return json.dumps(facts, ensure_ascii=False, allow_nan=False) + "\n"


def _record(fields: list[Any]) -> str:
    return ",".join(csv_field(field) for field in fields) + "\r\n"
