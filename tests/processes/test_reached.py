"""A command reaches the process that keeps the views, whatever either's environment says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

from steadyview.catalog import Holder, Lease, holder
from steadyview.cli.app import app
from steadyview.runtime.control import Listener, ask
from steadyview.runtime.holding import this_process
from tests.catalog.clocks import SetClock
from tests.conftest import SOAK
from tests.crash.keepers import ROOT

COMMAND = [sys.executable, "-c", "from steadyview.cli import main; main()"]
FOLDERS = ["/dev/null/x", "/tmp/" + "x" * 110, None]


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS if SOAK else FOLDERS[:1])
def test_an_unusable_runtime_folder_does_not_end_the_run_and_hides_it_from_nobody(
    tmp_path: Path, folder: str | None
) -> None:
    project = tmp_path / "shop"
    CliRunner().invoke(app, ["init", str(project)])
    plain = {k: v for k, v in os.environ.items() if k != "XDG_RUNTIME_DIR"}
    plain["PYTHONPATH"] = str(ROOT / "src")
    odd = {**plain, "XDG_RUNTIME_DIR": folder} if folder else plain
    process = subprocess.Popen(
        [*COMMAND, "run", "--json", "--project", str(project)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=odd,
        process_group=0,
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if all(v["state"] == "active" for v in json.loads(line)["views"] or [{"state": ""}]):
                break
        reading = threading.Thread(target=process.stdout.read, daemon=True)
        reading.start()
        assert process.poll() is None
        other = {**plain, "XDG_RUNTIME_DIR": str(tmp_path)}
        done = subprocess.run(
            [*COMMAND, "view", "rebuild", "order_details", "--project", str(project)],
            capture_output=True,
            text=True,
            env=other,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    finally:
        os.killpg(process.pid, 9)
        process.wait()


def test_a_listener_leaves_no_thread_and_is_named_by_the_lease(tmp_path: Path) -> None:
    with Lease.acquire(tmp_path, this_process("run", SetClock(1))) as lease:
        assert ask(tmp_path, {"do": "it"}) is None
        listener = Listener(tmp_path, lambda request, _: {"done": request["do"]})
        lease.listens_at(str(listener.path))
        assert (holder(tmp_path) or Holder(0, "", 0, "")).socket == str(listener.path)
        assert ask(tmp_path, {"do": "it"}) == {"done": "it"}
        listener.close()
        assert not [t for t in threading.enumerate() if t.name == "control"]
        assert ask(tmp_path, {"do": "it"}) is None
