"""A warehouse whose files were tampered with is refused, with what to do; nothing is made up."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta

import pytest

import steadyview
from steadyview.engine.failures import described
from steadyview.errors import StorageDamaged
from tests.crash import commits
from tests.crash.checks import check_all
from tests.crash.running import opened
from tests.crash.shop import new_shop


@pytest.fixture(scope="module")
def kept(tmp_path_factory, spark):
    """The SQLite part of a shop, kept for two rounds."""
    shop = new_shop(tmp_path_factory.mktemp("damage") / "shop", views=("regions",))
    settings = shop.folder / "steadyview.toml"
    before, _, behind = settings.read_text().partition("[sources.shop]")
    settings.write_text(before + behind[behind.index("[sources.crm]") :])
    shop.begin()
    with opened(shop.folder, spark) as here:
        here.warehouse.run_once()
        shop.move(1)
        here.warehouse.run_once()
    yield shop
    shop.database.drop()


@pytest.fixture
def shop(kept, tmp_path):
    """The shop; its warehouse is put back as it was afterwards."""
    shutil.copytree(kept.warehouse, tmp_path / "as it was")
    yield kept
    shutil.rmtree(kept.warehouse)
    shutil.copytree(tmp_path / "as it was", kept.warehouse)


def refusal(shop, spark) -> StorageDamaged:
    with steadyview.open(shop.folder, spark=spark) as warehouse:
        with pytest.raises(StorageDamaged) as found:
            warehouse.run_once()
        return found.value


def test_an_unreadable_catalog_is_refused(shop, spark):
    for file in shop.warehouse.glob("catalog.db*"):
        file.write_bytes(b"this is no database" * 500)
    found = refusal(shop, spark)
    assert "catalog.db" in found.message
    assert "backup" in str(found.hint)


def test_a_missing_log_file_is_refused_where_it_is_needed(shop, spark):
    for file in (shop.warehouse / "log").rglob("*.parquet"):
        if "_delta_log" not in file.parts:
            file.unlink()
    with opened(shop.folder, spark) as here, pytest.raises(StorageDamaged, match="lacks a file"):
        here.ask("verify", at=0)


def test_a_missing_base_file_is_refused_where_it_is_needed(shop, spark):
    for file in (shop.warehouse / "views").glob("regions-*/base/data/**/*.parquet"):
        file.unlink()
    with opened(shop.folder, spark) as here, pytest.raises(StorageDamaged, match="lacks a file"):
        here.ask("rows", view="regions")


def _halved(data: bytes) -> bytes:
    return data[: len(data) // 2]


def _emptied(_: bytes) -> bytes:
    """Spark would take it for a file without rows."""
    return b""


def _flipped(data: bytes) -> bytes:
    """One byte of the first column's values."""
    return data[:30] + bytes([data[30] ^ 0x55]) + data[31:]


def tamper(file, how) -> None:
    file.write_bytes(how(file.read_bytes()))
    # Hadoop's own checksum, which is there for files of Spark's alone
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


@pytest.mark.parametrize("how", [_halved, _emptied, _flipped])
def test_a_damaged_base_file_is_named_and_stops_its_view_alone(shop, spark, how):
    (file,) = (shop.warehouse / "views").glob("regions-*/base/data/**/*.parquet")
    tamper(file, how)
    shop.add_view("counted", "SELECT COUNT(*) AS customers FROM crm.customers")
    try:
        with opened(shop.folder, spark) as here:
            with pytest.raises(Exception) as found:  # noqa: PT011 - Spark's, or ours at once
                here.ask("rows", view="regions")
            told = described(found.value) or found.value
            assert isinstance(told, StorageDamaged)
            assert told.message == f'file "{file}" is damaged'
            shop.move(1)
            here.warehouse.run_once()
            views = {v.name: v for v in here.warehouse.status().views}
            assert views["regions"].state == "stopped"
            assert str(file) in str(views["regions"].error)
            assert (views["counted"].state, views["counted"].error) == ("active", None)
    finally:
        (shop.folder / "views" / "counted.sql").unlink()


def test_a_damaged_log_file_is_named_and_stops_its_readers(shop, spark):
    shop.move(1)
    with opened(shop.folder, spark) as here:
        with here.warehouse._following() as wait_for:
            snapshot = here.warehouse._parts.sources["crm"].snapshot()
            wait_for("crm", snapshot.horizon)
            snapshot.close()
        newest = max((shop.warehouse / "log").rglob("data/**/*.parquet"), key=_written)
        tamper(newest, _flipped)
        here.warehouse.run_once()
        (view,) = here.warehouse.status().views
        assert view.state == "stopped"
        assert str(newest) in str(view.error)


def _written(file) -> int:
    return file.stat().st_mtime_ns


def test_a_deleted_log_is_refused_and_never_made_anew(shop, spark):
    (table,) = (t.parent for t in (shop.warehouse / "log").rglob("_delta_log"))
    shutil.rmtree(table)
    for _ in range(2):
        found = refusal(shop, spark)
        assert found.message == 'the update log of "crm.customers" is missing'
        assert str(table) in str(found.detail)
    with opened(shop.folder, spark) as here, pytest.raises(StorageDamaged, match="is missing"):
        here.ask("verify", at=0)


def test_a_table_with_features_that_we_would_misread_is_refused(shop, spark):
    (log,) = (shop.warehouse / "views").glob("regions-*/delta/_delta_log")
    newest = max(int(f.stem) for f in log.glob("*.json"))
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors"],
        "writerFeatures": ["deletionVectors"],
    }
    (log / f"{newest + 1:020}.json").write_text(json.dumps({"protocol": protocol}) + "\n")
    found = refusal(shop, spark)
    assert "features that we would misread" in found.message
    assert "deletionVectors" in str(found.detail)


def test_a_clock_set_back_between_runs_sets_no_commit_back(kept, spark):
    with steadyview.open(kept.folder, spark=spark) as warehouse:
        warehouse._clock = _SetBack()
        kept.move(1)
        assert warehouse.run_once().cn == commits.last_cn(kept.warehouse) == 2
    with opened(kept.folder, spark) as here:
        check_all(kept, here, ["regions"])


class _SetBack:
    """A clock that is a day late."""

    def now_us(self) -> int:
        return int((datetime.now(UTC) - timedelta(days=1)).timestamp() * 1_000_000)
