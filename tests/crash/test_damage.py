"""A warehouse whose files were tampered with is refused, with what to do; nothing is made up."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta

import pytest

import steadyview
from steadyview.errors import StorageDamaged
from steadyview.runtime.clock import SystemClock
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
    for file in (shop.warehouse / "nodes").glob("regions-*/base/data/**/*.parquet"):
        file.unlink()
    with opened(shop.folder, spark) as here, pytest.raises(StorageDamaged, match="lacks a file"):
        here.ask("rows", view="regions")


def test_a_table_with_features_that_we_would_misread_is_refused(shop, spark):
    (log,) = (shop.warehouse / "nodes").glob("regions-*/delta/_delta_log")
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


class _SetBack(SystemClock):
    """A clock that is a day late."""

    def now_us(self) -> int:
        return int((datetime.now(UTC) - timedelta(days=1)).timestamp() * 1_000_000)
