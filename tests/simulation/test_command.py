"""`steadyview simulate`: what it prints, records and exits with."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from importlib import import_module

import psutil
import pytest
from typer.testing import CliRunner

from steadyview.checking import LEVELS, History, judge
from steadyview.cli.app import app

runner = CliRunner()
MEASURING = import_module("steadyview.simulation.measuring")


def simulate(*arguments: str, code: int = 0):
    result = runner.invoke(app, ["simulate", *arguments])
    assert result.exit_code == code, result.output
    return result


def test_a_kept_promise_is_a_table_and_exit_code_0():
    printed = simulate("--algorithm", "sweep", "--seeds", "1..60").stdout
    lines = [line.split() for line in printed.splitlines() if line.strip().startswith("sweep")]
    assert [line[1:6] for line in lines] == [
        ["single", "60", "complete", "complete", "0"],
        ["source-local", "60", "complete", "complete", "0"],
        ["global", "60", "weak", "weak", "0"],
    ]


def test_a_violation_is_drawn_and_exit_code_1():
    arguments = ("--algorithm", "strobe", "--scenario", "single", "--level", "complete")
    printed = simulate(*arguments, "--seeds", "1..60", code=1).stdout
    assert "below complete: seeds " in printed
    assert "warehouse" in printed
    assert "executes t1" in printed
    assert "\nstrong: " in printed


def test_a_history_that_was_not_judged_is_told_and_exit_code_1(monkeypatch):
    monkeypatch.setattr(MEASURING, "judge", lambda history: judge(history, budget=60))
    arguments = ("--algorithm", "recompute", "--scenario", "single", "--seeds", "1..60")
    (found,) = json.loads(simulate(*arguments, "--json", code=1).stdout)
    assert 0 < found["unknown"] < 60
    assert sum(found["levels"].values()) == 60 - found["unknown"]
    assert found["violations"] == []
    assert found["worst"] == "strong"
    printed = simulate(*arguments, code=1).stdout
    (line,) = [line.split() for line in printed.splitlines() if line.startswith(" recompute")]
    assert line[2:7] == ["60", "strong", "strong", "0", str(found["unknown"])]
    assert f"unknown whether strong: {found['unknown']} of 60 histories" in printed


def test_without_any_judgement_there_is_no_worst_level(monkeypatch):
    monkeypatch.setattr(MEASURING, "judge", lambda history: judge(history, budget=0))
    arguments = ("--algorithm", "sweep", "--scenario", "single", "--seeds", "1..9", "--json")
    (found,) = json.loads(simulate(*arguments, code=1).stdout)
    assert (found["unknown"], found["worst"]) == (9, None)


def test_json_says_everything():
    arguments = ("--algorithm", "sweep", "--scenario", "global", "--level", "strong", "--json")
    (found,) = json.loads(simulate(*arguments, "--seeds", "1..60", code=1).stdout)
    assert found["algorithm"] == "sweep"
    assert found["scenario"] == "global"
    assert found["histories"] == sum(found["levels"].values()) == 60
    assert list(found["levels"]) == list(LEVELS)
    assert (found["required"], found["worst"]) == ("strong", "weak")
    assert found["violations"][0]["level"] == "weak"
    assert found["unknown"] == 0
    assert 0 < found["messages_per_update"]["mean"] <= found["messages_per_update"]["max"]
    assert found["counterexample"]["seed"] == found["violations"][0]["seed"]
    assert found["counterexample"]["level"] == "weak"


def test_the_number_of_relations_is_that_of_the_view():
    arguments = ("--algorithm", "sweep-pipelined", "--scenario", "single", "--json")
    for n in (2, 5):
        printed = simulate(*arguments, "--seeds", "1..80", "--relations", str(n)).stdout
        (found,) = json.loads(printed)
        # n - 1 for a change of one occurrence; a relation used twice is changed at two
        assert n - 1 <= found["messages_per_update"]["mean"] <= 2 * (n - 1)


def test_all_means_every_algorithm_in_every_scenario_it_is_made_for():
    found = json.loads(simulate("--algorithm", "all", "--seeds", "1..3", "--json").stdout)
    cells = [(cell["algorithm"], cell["scenario"]) for cell in found]
    assert len(set(cells)) == len(cells) == 43
    assert ("batched-sweep", "global") in cells
    assert ("eca", "global") not in cells


def test_the_history_of_the_first_seed_is_recorded(tmp_path):
    file = tmp_path / "history.json"
    arguments = ("--algorithm", "c-strobe", "--scenario", "single", "--seeds", "9..12")
    simulate(*arguments, "--record", str(file))
    recorded = History.from_json(file.read_text())
    assert judge(recorded).level == "complete"
    assert runner.invoke(app, ["check-history", str(file)]).exit_code == 0


def test_the_shrunk_counterexample_is_recorded(tmp_path):
    file = tmp_path / "history.json"
    arguments = ("--algorithm", "t-strobe", "--scenario", "single", "--level", "complete")
    simulate(*arguments, "--seeds", "1..60", "--record", str(file), code=1)
    recorded = History.from_json(file.read_text())
    assert judge(recorded).level == "strong"
    assert len(recorded.transactions) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--algorithm", "strobo"), 'there is no algorithm "strobo"'),
        (("--algorithm", "sweep:2"), 'algorithm "sweep" takes no number "2"'),
        (
            ("--algorithm", "eca", "--scenario", "global"),
            '"eca" is not made for scenario "global"',
        ),
        (("--algorithm", "eca", "--seeds", "1..3", "--record", "/no/where"), "cannot write"),
        (("--algorithm", "eca", "--seeds", "7..3"), '"7..3" is no range of seeds'),
        (("--algorithm", "eca", "--seeds", "many"), '"many" is no range of seeds'),
        (("--algorithm", "eca", "--scenario", "local"), "Invalid value"),
        (("--algorithm", "eca", "--relations", "1"), "Invalid value"),
        (("--algorithm", "eca", "--jobs", "0"), "Invalid value"),
        ((), "Missing option"),
    ],
)
def test_wrong_usage_is_exit_code_2(arguments, message):
    assert message in simulate(*arguments, code=2).stderr


def test_errors_are_json_too():
    error = json.loads(simulate("--algorithm", "x", "--json", code=2).stderr)["error"]
    assert error["message"] == 'there is no algorithm "x"'
    assert "batched-sweep" in error["hint"]


def test_ctrl_c_ends_every_process_without_a_traceback():
    command = [sys.executable, "-c", "from steadyview.cli import main; main()", "simulate"]
    arguments = ["--algorithm", "all", "--seeds", "1..1000000000", "--jobs", "2"]
    with subprocess.Popen(
        [*command, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # who is started in the background of a shell without a terminal ignores Ctrl-C
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as running:
        children = _busy_children(running.pid)
        os.killpg(running.pid, signal.SIGINT)
        printed, complained = running.communicate(timeout=240)
    assert running.returncode == 130
    assert printed == ""
    assert "Traceback" not in complained
    _, alive = psutil.wait_procs(children, timeout=30)
    assert alive == []


def _busy_children(pid: int) -> list[psutil.Process]:
    """The workers, once they have worked for a moment."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        children = psutil.Process(pid).children(recursive=True)
        if sum(child.cpu_times().user > 1 for child in children) >= 2:
            return children
        time.sleep(0.1)
    raise AssertionError("the workers do not work")
