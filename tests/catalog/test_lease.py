"""One process at a time; a killed one holds nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from steadyview.catalog import Holder, Lease, holder
from steadyview.errors import StorageUnavailable, WarehouseHeld

ME = Holder(4711, "here", 1_700_000_000_000_000, "steadyview run")

HOLD = """
import sys
from pathlib import Path
from steadyview.catalog import Holder, Lease
lease = Lease.acquire(Path(sys.argv[1]), Holder(4711, "there", 0, "steadyview run"))
print("held", flush=True)
sys.stdin.read()
"""


def test_a_second_holder_is_told_who_holds_it_since_when(tmp_path: Path) -> None:
    with Lease.acquire(tmp_path, ME):
        with pytest.raises(WarehouseHeld) as raised:
            Lease.acquire(tmp_path, ME)
        assert "process 4711" in raised.value.message
        assert '"here" since 2023-11-14 22:13:20 UTC' in raised.value.message
        assert holder(tmp_path) == ME


def test_a_released_lease_can_be_taken_again(tmp_path: Path) -> None:
    assert holder(tmp_path) is None
    lease = Lease.acquire(tmp_path, ME)
    lease.release()
    lease.release()
    assert holder(tmp_path) is None
    Lease.acquire(tmp_path, ME).release()


def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(WarehouseHeld, match="there"):
            Lease.acquire(tmp_path, ME)
        found = holder(tmp_path)
        assert found is not None
        assert found.host == "there"
        process.kill()
        process.wait()
        assert holder(tmp_path) is None
        Lease.acquire(tmp_path, ME).release()


def test_a_folder_that_cannot_be_made_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageUnavailable, match="cannot be accessed"):
        Lease.acquire(tmp_path / "file" / "warehouse", ME)


def test_the_lease_comes_before_anything_else_is_there(tmp_path: Path) -> None:
    with Lease.acquire(tmp_path / "new" / "warehouse", ME):
        assert holder(tmp_path / "new" / "warehouse") == ME


def test_asking_who_holds_it_takes_nothing(tmp_path: Path) -> None:
    with Lease.acquire(tmp_path, ME):
        holder(tmp_path)
        with pytest.raises(WarehouseHeld):
            Lease.acquire(tmp_path, ME)
