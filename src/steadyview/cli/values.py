"""Values of a database as text: exact for programs (csv, json), harmless for terminals (table).

JSON: whole numbers, floats and booleans as themselves; decimals as strings, because a JSON reader
would make floats of them; dates and times as ISO 8601, TIMESTAMP in UTC with "Z"; binary as base64;
NaN and infinities, which JSON does not know, as strings.
CSV (RFC 4180): the same texts; NULL is an empty field, the empty string is "".
"""

from __future__ import annotations

import base64
import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from rich.text import Text

_MUST_QUOTE = frozenset(',"\r\n')


def json_value(value: Any) -> Any:
    """The value as something `json.dumps` writes without loss.

    >>> json_value(Decimal("12.50")), json_value(2**60), json_value(float("nan"))
    ('12.50', 1152921504606846976, 'NaN')
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else _odd_float(value)
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, date):
        return iso_time(value) if isinstance(value, datetime) else value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, dict):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    return value


def iso_time(time: datetime) -> str:
    """ISO 8601 with microseconds; a time with a zone is told in UTC, ending in Z.

    >>> iso_time(datetime(2026, 11, 16, 10, 0, tzinfo=UTC))
    '2026-11-16T10:00:00.000000Z'
    """
    if time.tzinfo is None:
        return time.isoformat(timespec="microseconds")
    return time.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def csv_field(value: Any) -> str:
    """One field of an RFC 4180 record.

    >>> csv_field(None), csv_field(""), csv_field('a "b" c')
    ('', '""', '"a ""b"" c"')
    """
    if value is None:
        return ""
    text = plain_text(value)
    if text == "" or not _MUST_QUOTE.isdisjoint(text):
        return '"' + text.replace('"', '""') + '"'
    return text


def plain_text(value: Any) -> str:
    """The value as one text, whatever its type; nested values as JSON."""
    value = json_value(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def cell(value: Any) -> Text:
    """The value for a table. NULL is told from the texts 'NULL' and '', shown in quotes."""
    if value is None:
        return Text("NULL", style="dim italic")
    text = "".join(c if c.isprintable() else _escaped(c) for c in plain_text(value))
    return Text(f'"{text}"' if isinstance(value, str) and text in ("", "NULL") else text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _odd_float(value: float) -> str:
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
