"""SIGTERM ends `steadyview run` in order; the next one goes on where it stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from tests.crash.checks import check_all
from tests.crash.keepers import ROOT, Keeper
from tests.crash.shop import new_shop

PATIENCE = 180.0
COMMAND = [sys.executable, "-c", "from steadyview.cli import main; main()", "run", "--json"]


@pytest.fixture
def shop(tmp_path):
    shop = new_shop(tmp_path / "shop")
    shop.begin()
    yield shop
    shop.database.drop()


@contextmanager
def steadyview_run(shop):
    process = subprocess.Popen(
        [*COMMAND, "--project", str(shop.folder)],
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
        if status["views"] and all((v["cn"] or 0) >= wanted for v in status["views"]):
            return
    pytest.fail(process.stderr.read())


def test_a_signal_ends_run_with_0_and_nothing_is_lost(shop):
    with steadyview_run(shop) as process:
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
