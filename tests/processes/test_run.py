"""`steadyview run` as a process: it follows changes, and a Ctrl-C ends it cleanly."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, contextmanager

import pytest
from typer.testing import CliRunner

from steadyview.cli.app import app


@contextmanager
def running(folder):
    command = [sys.executable, "-c", "from steadyview.cli import main; main()"]
    process = subprocess.Popen(
        [*command, "run", "--json", "--project", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        process_group=0,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def statuses(process):
    for line in process.stdout:
        yield json.loads(line)


def wait_for_cn(process, wanted: int) -> None:
    for status in statuses(process):
        if all(view["cn"] is not None and view["cn"] >= wanted for view in status["views"]):
            return
    pytest.fail(process.stderr.read())


@pytest.mark.slow
def test_run_follows_changes_and_ends_with_0_on_ctrl_c(tmp_path):
    folder = tmp_path / "shop"
    CliRunner().invoke(app, ["init", str(folder)])
    with running(folder) as process:
        wait_for_cn(process, 0)
        with closing(sqlite3.connect(folder / "crm.db", timeout=30)) as database:
            database.execute("UPDATE customers SET region = 'west' WHERE id = 3")
            database.commit()
        wait_for_cn(process, 1)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        assert "Traceback" not in errors
