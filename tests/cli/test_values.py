"""Values on their way out: exact for programs, harmless and unmistakable for people."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyview.cli.values import cell, csv_field, json_value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (2**63 - 1, 2**63 - 1),
        (0.1, 0.1),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (Decimal("1E+3"), "1000"),
        (Decimal("0.10"), "0.10"),
        (date(1, 1, 1), "0001-01-01"),
        (datetime(2026, 1, 2, 3, 4, 5), "2026-01-02T03:04:05.000000"),
        (datetime(2026, 1, 2, 3, tzinfo=UTC), "2026-01-02T03:00:00.000000Z"),
        (
            datetime(2026, 1, 2, 3, tzinfo=timezone(timedelta(hours=2))),
            "2026-01-02T01:00:00.000000Z",
        ),
        (b"\x00\xff", "AP8="),
        ({"a": Decimal("1.0")}, {"a": "1.0"}),
        ([1, None], [1, None]),
    ],
)
def test_json_keeps_every_value_exactly(value, expected):
    assert json_value(value) == expected
    json.dumps(json_value(value), allow_nan=False)


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_decimals_come_back_from_json_unchanged(value):
    assert Decimal(json.loads(json.dumps(json_value(value)))) == value


@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1), min_size=2))
def test_a_csv_record_is_read_back_by_any_reader(fields):
    record = ",".join(map(csv_field, fields)) + "\r\n"
    assert next(csv.reader(io.StringIO(record, newline=""), strict=True)) == fields


def test_csv_tells_null_from_the_empty_text():
    assert csv_field(None) == ""
    assert csv_field("") == '""'


def test_a_table_tells_null_from_the_text_null():
    assert cell(None).plain == "NULL"
    assert cell("NULL").plain == '"NULL"'
    assert cell("").plain == '""'


def test_a_table_shows_control_characters_and_does_not_send_them():
    assert cell("\x1b[31mred\r\n\x07").plain == "\\x1b[31mred\\r\\n\\x07"


def test_a_table_takes_brackets_as_text():
    assert cell("[bold]x[/]").plain == "[bold]x[/]"
