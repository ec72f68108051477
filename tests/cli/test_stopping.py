"""Signals while work is under way, and what reaches standard error."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from steadyview.cli.stopping import run_until_signalled


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_sets_the_event_and_the_work_ends_by_itself(number):
    ended = []

    def work(stop: threading.Event) -> None:
        os.kill(os.getpid(), number)
        assert stop.wait(30)
        ended.append("cleanly")

    run_until_signalled(work)
    assert ended == ["cleanly"]


def test_what_the_work_raises_is_raised():
    def work(_stop: threading.Event) -> None:
        raise ValueError("x")

    with pytest.raises(ValueError, match="x"):
        run_until_signalled(work)


def test_handlers_are_given_back():
    before = signal.getsignal(signal.SIGINT)
    run_until_signalled(lambda stop: None)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_signal_does_not_wait():
    program = """
import os, signal, threading
from steadyview.cli.stopping import run_until_signalled
def work(stop):
    os.kill(os.getpid(), signal.SIGINT)
    stop.wait()
    os.kill(os.getpid(), signal.SIGINT)
    threading.Event().wait()
run_until_signalled(work)
"""
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 130
    assert "stopping after this batch" in ended.stderr


def test_javas_warning_is_hidden_and_everything_else_passes():
    program = """
import subprocess, sys
from steadyview.cli.quiet_java import hide_incubator_warning
hide_incubator_warning()
lines = "echo 'WARNING: Using incubator modules: jdk.incubator.vector' >&2; echo other >&2"
subprocess.run(["sh", "-c", lines], check=True)
print("ours", file=sys.stderr)
sys.stdin.read()
"""
    command = [sys.executable, "-c", program]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
    )
    lines = {process.stderr.readline(), process.stderr.readline()}
    process.communicate()
    assert lines == {"other\n", "ours\n"}
