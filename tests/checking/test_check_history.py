"""`steadyview check-history` from its arguments to what is printed."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from steadyview.cli.app import app
from tests.checking.test_history_file import GOOD

runner = CliRunner()


@pytest.fixture
def checked(tmp_path):
    def run(document, *options):
        file = tmp_path / "history.json"
        file.write_text(document if isinstance(document, str) else json.dumps(document))
        return runner.invoke(app, ["check-history", str(file), *options])

    return run


def test_it_prints_level_sentence_and_the_vector_of_every_state(checked):
    result = checked(GOOD)
    assert result.exit_code == 0
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[0] == ["level:", "complete"]
    assert "one by one" in result.stdout
    assert ["strong", "holds"] in lines
    assert ["1", "0", "1"] in lines


def test_a_broken_history_is_judged_too_and_exits_with_0(checked):
    result = checked({**GOOD, "states": [[], [{"row": [1, 3], "count": 1}]]})
    assert result.exit_code == 0
    assert result.stdout.startswith("level: none\nstate 1, the last, is not the view")


def test_json_has_level_witness_and_sentence(checked):
    result = checked({**GOOD, "states": [[], [{"row": [9, 9], "count": 2}], []]}, "--json")
    assert result.exit_code == 0
    verdict = json.loads(result.stdout)
    assert verdict["level"] == "convergent"
    assert verdict["levels"]["weak"] == "fails"
    assert verdict["witness"]["breaks"]["extra"] == [{"row": [9, 9], "count": 2}]
    assert verdict["sentence"].endswith("it shows [9, 9] 2 times too many")


def test_decimals_and_texts_of_a_state_are_printed_exactly_and_harmlessly(checked):
    document = {
        "view": "SELECT a, b FROM r",
        "relations": {"r": {"source": "x", "columns": ["a", "b"], "rows": []}},
        "transactions": [],
        "states": [[{"row": [1.5, "\x1b[31m\x9b"], "count": 1}]],
    }
    result = checked(document)
    assert '[1.5, "\\u001b[31m\\x9b"] too many' in result.stdout


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_malformed_file_is_exit_code_2_with_its_place(checked, options):
    result = checked({**GOOD, "states": []}, *options)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "the history is malformed at states" in result.stderr


def test_a_refused_view_is_exit_code_2_with_its_reason(checked):
    result = checked({**GOOD, "view": "SELECT a FROM r7"}, "--json")
    assert result.exit_code == 2
    assert json.loads(result.stderr)["error"]["code"] == "UNKNOWN_TABLE"


def test_a_file_that_cannot_be_read_is_exit_code_2(tmp_path):
    for path in (tmp_path / "absent.json", tmp_path):
        result = runner.invoke(app, ["check-history", str(path)])
        assert result.exit_code == 2
        assert "cannot read" in result.stderr
    binary = tmp_path / "binary.json"
    binary.write_bytes(b"\xff\xfe")
    assert runner.invoke(app, ["check-history", str(binary)]).exit_code == 2


def test_help_has_an_example():
    result = runner.invoke(app, ["check-history", "--help"])
    assert "steadyview check-history history.json" in result.stdout
