"""A full disk is told as such wherever it strikes, and nothing is lost by it.

The warehouse lies on a small file system of its own, filled up by a file beside it.
"""

from __future__ import annotations

import errno
import os
import subprocess

import pytest

from steadyview.errors import StorageUnavailable
from tests.crash.checks import check_all
from tests.crash.running import Running, opened, published
from tests.crash.shop import new_shop

KB = 1024


class SmallDisk:
    """A file system in memory; `leave` fills it up to so many bytes."""

    def __init__(self, folder) -> None:
        self.folder = folder
        self._filler = folder / "filler"

    def leave(self, free: int) -> None:
        self.free_up()
        with self._filler.open("wb") as filler:
            while not self._filled(filler, free):
                filler.truncate(0)

    def _filled(self, filler, free: int) -> bool:
        """Whether it was; not if the warehouse was quicker."""
        found = os.statvfs(self.folder)
        size = found.f_bavail * found.f_frsize - free
        try:
            os.posix_fallocate(filler.fileno(), 0, max(size, 1))
        except OSError as full:
            if full.errno != errno.ENOSPC:
                raise
            return False
        return True

    def free_up(self) -> None:
        self._filler.unlink(missing_ok=True)


@pytest.fixture
def disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "steadyview-test", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("a small file system cannot be mounted here")
    yield SmallDisk(folder)
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def shop(tmp_path, disk):
    shop = new_shop(tmp_path / "shop")
    (shop.folder / "warehouse").symlink_to(disk.folder)
    shop.begin()
    yield shop
    shop.database.drop()


def test_a_full_disk_is_a_clear_error_wherever_it_strikes_and_work_goes_on(shop, disk, spark):
    with opened(shop.folder, spark) as here:
        here.warehouse.run_once()
        errors = []
        for free in (0, 8 * KB, 40 * KB, 80 * KB, 160 * KB):
            shop.sell(2)
            shop.move(1)
            disk.leave(free)
            errors += _errors_of_run_once(here.warehouse)
        disk.free_up()
        here.warehouse.run_once()
        check_all(shop, here)
    assert {e.message.split(' "')[0] for e in errors} == {"disk full while writing"}
    assert all("free some space" in str(e.hint) for e in errors)
    assert len({e.message for e in errors}) > 1, "struck at one place only"


def _errors_of_run_once(warehouse) -> list[StorageUnavailable]:
    """The full disk it met; anything else that goes wrong fails the test."""
    try:
        warehouse.run_once()
    except StorageUnavailable as error:
        return [error]
    return []


def test_run_goes_on_by_itself_when_there_is_space_again(shop, disk, spark):
    with opened(shop.folder, spark) as here, Running(here.warehouse) as running:
        running.until(published)
        disk.leave(0)
        shop.sell()
        full = running.until(lambda s: _full(s.error) or any(_full(x.error) for x in s.sources))
        assert full.cn == 0
        disk.free_up()
        running.until(lambda s: s.cn == 3 and published(s) and s.error is None)
        check_all(shop, here)


def _full(error: str | None) -> bool:
    return "disk full" in (error or "")
