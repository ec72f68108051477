"""Every wrong input is told as it stands in `wrong_inputs.txt`; see `wrong_inputs.py`."""

from __future__ import annotations

import pytest

from tests.cli.wrong_inputs import INPUTS, SECRET, TEXTS, told_of, written

OF_THE_ARGUMENT_PARSER = "Usage: "


@pytest.mark.parametrize("name", INPUTS)
def test_the_whole_message_is_the_one_that_was_read(name):
    assert told_of(name) == dict(written())[name]


def test_the_file_has_every_input_and_no_other():
    assert [name for name, _ in written()] == list(INPUTS)


def test_every_message_says_what_to_do():
    ours = {n: text for n, text in written() if not text.startswith(OF_THE_ARGUMENT_PARSER)}
    assert [n for n, text in ours.items() if "hint: " not in text and "warning: " not in text] == []


def test_no_message_shows_a_secret():
    assert SECRET not in TEXTS.read_text(encoding="utf-8")
