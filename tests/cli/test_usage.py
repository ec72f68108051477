"""Arguments: what is refused before anything is opened, and what help says."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
import typer
from typer.testing import CliRunner

from steadyview.cli.app import app
from steadyview.cli.options import parse_at, parse_time

runner = CliRunner()
COMMANDS = (
    ["init"],
    ["check"],
    ["explain"],
    ["run"],
    ["status"],
    ["query"],
    ["history"],
    ["compress"],
    ["verify"],
    ["source", "list"],
    ["source", "remove"],
    ["view", "list"],
    ["view", "drop"],
    ["view", "rename"],
    ["view", "rebuild"],
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example(command):
    result = runner.invoke(app, [*command, "--help"])
    assert result.exit_code == 0
    assert "Example" in result.stdout
    assert f"steadyview {' '.join(command)}" in result.stdout


@pytest.mark.parametrize("arguments", [["frobnicate"], ["query"], ["status", "--nope"], ["init"]])
def test_wrong_usage_is_exit_code_2(arguments):
    assert runner.invoke(app, arguments).exit_code == 2


def test_a_moment_is_a_cn_or_a_time_and_a_time_without_zone_is_utc():
    assert parse_at(None) is None
    assert parse_at("17") == 17
    assert parse_at("2026-01-02 03:04") == datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    assert parse_at("2026-01-02T03:04+02:00").utcoffset() == timedelta(hours=2)


@pytest.mark.parametrize("text", ["-1", "yesterday", "1.5", "", "２"])
def test_anything_else_is_no_moment(text):
    with pytest.raises(typer.BadParameter):
        parse_at(text)


def test_a_length_of_time_has_a_unit():
    assert parse_time(None) is None
    assert parse_time("30s") == parse_time("30 seconds") == timedelta(seconds=30)
    assert parse_time("1.5m") == timedelta(seconds=90)
    assert parse_time("2 Hours") == timedelta(hours=2)


@pytest.mark.parametrize("text", ["30", "0s", "-1s", "1 month", "", "s", "1e3s"])
def test_anything_else_is_no_length_of_time(text):
    with pytest.raises(typer.BadParameter):
        parse_time(text)


HEAVY = ("pyspark", "pyarrow", "deltalake", "numpy", "pandas", "sqlglot", "psycopg")
LOADING = f"""
import sys
from typer.main import get_command
from typer.testing import CliRunner
from steadyview.cli.app import app

def every(command, words=()):
    yield words
    for name, inner in getattr(command, "commands", {{}}).items():
        yield from every(inner, (*words, name))

asked = [[*words, "--help"] for words in every(get_command(app))]
for arguments in [*asked, ["--version"], ["init", sys.argv[1]]]:
    result = CliRunner().invoke(app, arguments)
    loaded = sorted(set({HEAVY!r}) & set(sys.modules))
    if result.exit_code or loaded:
        sys.exit(f"{{arguments}} has loaded {{loaded}}: {{result.output}}")
print(len(asked))
"""


def test_help_of_every_command_and_init_load_nothing_heavy(tmp_path):
    ended = subprocess.run(
        [sys.executable, "-c", LOADING, tmp_path / "shop"], capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout) > len(COMMANDS)
