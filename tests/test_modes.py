"""Who may read a warehouse: its owner, or its group; told by the modes of folders and files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from steadyview.catalog import Catalog, Holder, Lease
from steadyview.delta.durability import make_folder, sync_file
from steadyview.modes import make_root, narrow_umask, settle
from tests.catalog.clocks import SetClock


@pytest.fixture(autouse=True)
def _open_umask() -> Iterator[None]:
    """As open as a process can be: nothing is private by luck."""
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode) & 0o777


def modes(root: Path) -> dict[str, int]:
    return {str(p.relative_to(root)): mode(p) for p in [root, *root.rglob("*")]}


def made(root: Path, *, shared: bool) -> dict[str, int]:
    """The modes of a small warehouse while it is in use."""
    catalog = Catalog.create(root, SetClock(), shared=shared)
    with catalog, Lease.acquire(root, Holder(1, "host", 1, "test")):
        make_folder(root / "log" / "shop")
        (root / "log" / "shop" / "a.parquet").write_bytes(b"x")
        sync_file(root / "log" / "shop" / "a.parquet")
        return modes(root)


def test_a_warehouse_is_its_owners_alone(tmp_path: Path) -> None:
    found = made(tmp_path / "warehouse", shared=False)
    files = {"catalog.db", "catalog.db-wal", "catalog.db-shm", "lease", "lease.gate"}
    assert {name: found.pop(name) for name in files | {"log/shop/a.parquet"}} == dict.fromkeys(
        files | {"log/shop/a.parquet"}, 0o600
    )
    assert set(found.values()) == {0o700}


def test_a_shared_warehouse_is_its_groups_too(tmp_path: Path) -> None:
    os.umask(0o077)
    found = made(tmp_path / "warehouse", shared=True)
    assert {m for name, m in found.items() if "." in name[1:] or "lease" in name} == {0o660}
    assert found["."] == found["log"] == found["log/shop"] == 0o770


def test_a_warehouse_open_to_others_is_closed_and_that_is_said_once(tmp_path: Path) -> None:
    root = tmp_path / "warehouse"
    root.mkdir(mode=0o755)
    told = settle(root, shared=False)
    assert told is not None
    assert "0755" in told
    assert mode(root) == 0o700
    assert settle(root, shared=False) is None


def test_a_private_warehouse_can_be_shared_later_with_all_it_holds(tmp_path: Path) -> None:
    root = tmp_path / "warehouse"
    made(root, shared=False)
    assert "group" in str(settle(root, shared=True))
    found = modes(root)
    assert found["log/shop"] == found["."] == 0o770
    assert found["catalog.db"] == found["log/shop/a.parquet"] == 0o660


def test_no_warehouse_is_not_settled(tmp_path: Path) -> None:
    assert settle(tmp_path / "none", shared=False) is None


def test_the_umask_is_narrow_inside_and_as_before_outside(tmp_path: Path) -> None:
    for shared, file in ((False, 0o600), (True, 0o660)):
        with narrow_umask(shared=shared):
            (tmp_path / f"{shared}").write_text("x")
        assert mode(tmp_path / f"{shared}") == file
    assert os.umask(0) == 0


def test_the_folders_above_a_warehouse_are_left_alone(tmp_path: Path) -> None:
    make_root(tmp_path / "above" / "warehouse", shared=False)
    assert mode(tmp_path / "above") == 0o777
