"""The table and the line of `status` and `run`."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC, datetime

from rich.console import Console

from steadyview.catalog import SourceState
from steadyview.cli.status_table import held_back, status_line, status_table
from steadyview.runtime.status import (
    HoldStatus,
    ReaderStatus,
    Refusal,
    SourceStatus,
    Status,
    ViewStatus,
    source_status,
)

TIME = datetime(2026, 11, 16, 10, tzinfo=UTC)
SALES = SourceStatus("sales", "postgresql", "0/16A0", 42, 0.25, "capturing", None)
REVENUE = ViewStatus("revenue", "incremental", "complete", "active", 41, TIME, 75.0, 12.4, None)
STATUS = Status("shop", 42, TIME, None, [SALES], [REVENUE])
HOLDER = {"pid": 7, "host": "here", "started": 0, "command": "steadyview run"}


def shown(status: Status) -> str:
    out = io.StringIO()
    Console(file=out, width=200).print(status_table(status))
    return out.getvalue()


def test_the_table_shows_positions_lag_cn_and_age():
    text = shown(STATUS)
    for fact in ("shop  cn 42", "0/16A0", "0.2 s", "revenue", "41", "75 s", "12"):
        assert fact in text


def test_contact_and_errors_have_an_age():
    lost = replace(SALES, error="away", state="error", contact_seconds=7200, error_seconds=75)
    text = shown(replace(STATUS, sources=[lost]))
    assert "2 h ago" in text
    assert "sales: away  (found 75 s ago)" in text


def test_a_source_is_shown_as_the_last_run_knew_it():
    state = SourceState("sales", "postgresql", None, 0, 0, 0, None, heard=1_000_000)
    failed = replace(state, error="away", since=2_000_000)
    later = 100_000_000
    assert source_status(state, None, None, later, held=False).state == "idle"
    assert source_status(state, None, None, later, held=True).state == "silent"
    assert source_status(state, None, None, 9_000_000, held=True).state == "capturing"
    known = source_status(failed, None, None, later, held=True)
    assert (known.state, known.error, known.error_seconds) == ("error", "away", 98.0)
    assert source_status(failed, 0.1, None, later, held=True).state == "capturing"


def test_who_holds_the_warehouse_is_named():
    assert "steadyview run is process 7 on here" in shown(replace(STATUS, holder=HOLDER))


def test_what_is_wrong_stands_below_the_tables():
    lost = replace(SALES, error='source "sales" does not answer', state="error")
    failed = replace(REVENUE, error="[DIVIDE_BY_ZERO] at cn 42", state="stopped")
    text = shown(replace(STATUS, sources=[lost], views=[failed]))
    assert 'sales: source "sales" does not answer' in text
    assert "revenue: [DIVIDE_BY_ZERO] at cn 42" in text


def test_a_view_without_state_and_a_source_without_capture_show_dashes():
    text = shown(
        replace(
            STATUS,
            sources=[replace(SALES, position=None, lag_seconds=None)],
            views=[replace(REVENUE, cn=None, age_seconds=None, rows_per_second=None)],
        )
    )
    assert "None" not in text
    assert "NULL" not in text


def test_how_far_a_first_state_is_stands_below_the_tables_and_in_the_line():
    read = "sales.orders: 400,000 of about 1,200,000 rows read"
    first = replace(REVENUE, state="building", cn=None, progress=read, build_seconds=75.0)
    status = replace(STATUS, views=[first])
    assert f"revenue: first state, {read}, for 75 s" in shown(status)
    assert f"revenue cn - (building, first state, {read}, for 75 s)" in status_line(status)
    beside = replace(REVENUE, progress="", build_seconds=75.0)
    assert "revenue: a new state beside, for 75 s" in shown(replace(STATUS, views=[beside]))


def test_a_view_that_goes_on_without_its_file_says_why():
    refused = replace(REVENUE, refusal=Refusal("UNKNOWN_COLUMN", "there is no column x"))
    text = shown(replace(STATUS, views=[refused]))
    assert "does not take its place (UNKNOWN_COLUMN), it goes on as it was" in text
    assert "there is no column x" in text
    paused = replace(STATUS, views=[replace(REVENUE, state="paused", paused_seconds=7200.0)])
    assert "revenue: its file is gone since 2 h" in shown(paused)
    assert "steadyview view drop revenue" in shown(paused)
    assert "\n" not in status_line(paused)


def test_the_line_is_one_line():
    assert status_line(STATUS) == "cn 42 | sales lag 0.2 s | revenue cn 41 (active)"
    lost = replace(SALES, error='source "sales" does not answer\ndetail: it is down')
    assert "\n" not in status_line(replace(STATUS, sources=[lost]))


def test_readers_that_are_behind_are_named():
    readers = [ReaderStatus("cache", 41, 0), ReaderStatus("slow", 3, 38)]
    text = shown(replace(STATUS, views=[replace(REVENUE, readers=readers)]))
    assert "changes after cn 3 are kept for subscription slow, 38 commits behind" in text
    assert "cache" not in text


def test_who_has_too_much_kept_is_told_with_what_lets_it_go():
    drop = "steadyview subscription drop slow"
    slow = HoldStatus("subscription", "slow", 7, 21_300_000_000, too_much=True, release=drop)
    fine = HoldStatus("audit", "crm", 9, 2_000, too_much=False, release="")
    status = replace(STATUS, holds=[slow, fine])
    fact = "for subscription slow 21.3 GB after cn 7 are kept beyond the retention"
    assert held_back(status) == [f"{fact}: more than hold_back; to let go: {drop}"]
    for fact in (*held_back(status), "for audit crm 2.0 kB after cn 9 are kept"):
        assert fact in shown(status)
    assert drop in status_line(status)
    assert "crm 2.0 kB" not in status_line(status)
