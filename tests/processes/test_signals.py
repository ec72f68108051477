"""Ctrl-C and SIGTERM end `steadyview run` in order; the next one goes on where it stopped."""

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
from tests.crash.checks import check_all
from tests.crash.keepers import ROOT, Keeper

PATIENCE = 180.0
COMMAND = [sys.executable, "-c", "from steadyview.cli import main; main()", "run", "--json"]


@contextmanager
def steadyview_run(folder):
    process = subprocess.Popen(
        [*COMMAND, "--project", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        process_group=0,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def wait_for_cn(process, wanted: int) -> None:
    for line in process.stdout:
        status = json.loads(line)
        cns = [view["cn"] for view in status["views"]]
        if cns and all(cn is not None and cn >= wanted for cn in cns):
            return
    pytest.fail(process.stderr.read())


@pytest.mark.slow
def test_run_follows_changes_and_ends_with_0_on_ctrl_c(tmp_path):
    folder = tmp_path / "shop"
    CliRunner().invoke(app, ["init", str(folder)])
    with steadyview_run(folder) as process:
        wait_for_cn(process, 0)
        with closing(sqlite3.connect(folder / "crm.db", timeout=30)) as database:
            database.execute("UPDATE customers SET region = 'west' WHERE id = 3")
            database.commit()
        wait_for_cn(process, 1)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, errors
        assert "Traceback" not in errors


@pytest.mark.slow
def test_sigterm_ends_run_with_0_and_nothing_is_lost(shop):
    with steadyview_run(shop.folder) as process:
        wait_for_cn(process, 0)
        shop.sell()
        wait_for_cn(process, 1)
        shop.sell()
        os.killpg(process.pid, signal.SIGTERM)
        _, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, errors
        assert "stopping after this batch" in errors
        assert "Traceback" not in errors
    shop.move(1)
    keeper = Keeper(shop.folder)
    keeper.ask("once")
    check_all(shop, keeper)
    keeper.end()
