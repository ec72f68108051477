from __future__ import annotations

import re
from pathlib import Path

from steadyview.views.reasons import REASONS

DOCS = Path(__file__).parents[2] / "docs" / "reasons.md"


def test_codes_are_unique_and_upper_case() -> None:
    codes = [reason.code for reason in REASONS]
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch(r"[A-Z][A-Z_]+", code) for code in codes)


def test_the_documentation_has_every_reason_in_order_word_for_word() -> None:
    documented = re.findall(r"^### (\w+)\n\n(.+)\n\n\*What to do:\* (.+)$", DOCS.read_text(), re.M)
    expected = [(r.code, f"{_sentence(r.meaning)}", f"{_sentence(r.hint)}") for r in REASONS]
    assert documented == expected


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
