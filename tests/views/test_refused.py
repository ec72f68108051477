"""Every reason has cases in `refused/<code>.sql`; `/*!*/` stands before the refused place."""

from __future__ import annotations

import pytest

from steadyview.errors import ViewRefused
from steadyview.views.reasons import BY_CODE, REASONS
from tests.views.shop import HERE, plan

RAISED_ELSEWHERE = {"FLOAT_SUM", "TYPE_ERROR", "READING", "CYCLE", "PARENT", "LEVEL"}
MARK = "/*!*/"
CASES = [
    pytest.param(path.stem.upper(), case.strip("\n"), id=f"{path.stem}-{number}")
    for path in sorted((HERE / "refused").glob("*.sql"))
    for number, case in enumerate(path.read_text(encoding="utf-8").split("\n----\n"))
]


@pytest.mark.parametrize(("code", "text"), CASES)
def test_a_case_is_refused_with_its_code_at_its_place(code: str, text: str) -> None:
    with pytest.raises(ViewRefused) as refused:
        plan(text)
    assert refused.value.code == code
    if MARK in text:
        before = text.partition(MARK)[0] + MARK
        place = (before.count("\n") + 1, len(before) - before.rfind("\n"))
        assert (refused.value.line, refused.value.column) == place


@pytest.mark.parametrize("code", [r.code for r in REASONS if r.code not in RAISED_ELSEWHERE])
def test_every_reason_is_raised_by_a_case(code: str) -> None:
    assert (HERE / "refused" / f"{code.lower()}.sql").exists()


def test_a_refusal_shows_the_line_the_place_and_a_hint() -> None:
    with pytest.raises(ViewRefused) as refused:
        plan("SELECT id\n\tFROM sales.order")
    assert str(refused.value).splitlines() == [
        'view "v" reads the unknown table "sales.order"',
        "detail: line 2, column 7",
        "  \tFROM sales.order",
        "  \t     ^",
        'hint: did you mean "sales.orders"?',
    ]


def test_places_count_from_the_file_not_from_the_select() -> None:
    with pytest.raises(ViewRefused) as refused:
        plan("-- a comment\nCREATE MATERIALIZED VIEW v AS SELECT STD(id) AS m FROM sales.orders")
    assert (refused.value.line, refused.value.column) == (2, 38)


def test_every_hint_is_a_sentence_of_use() -> None:
    assert all(len(reason.hint) > 5 and len(reason.meaning) > 5 for reason in BY_CODE.values())
