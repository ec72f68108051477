"""One process at a time keeps a warehouse; everybody may read it meanwhile."""

from __future__ import annotations

import os
import socket
from datetime import UTC, datetime

import pytest

from tests.crash.checks import check_all
from tests.crash.keepers import Failed, Keeper
from tests.crash.running import Running, opened, published


def test_a_second_run_is_refused_with_who_holds_it_while_reading_works(shop, spark):
    with opened(shop.folder, spark) as here, Running(here.warehouse) as running:
        running.until(published)
        other = Keeper(shop.folder, spark)
        with pytest.raises(Failed) as refusal:
            other.ask("once")
        kind, text = refusal.value.args
        assert kind == "WarehouseHeld"
        assert f'process {os.getpid()} on host "{socket.gethostname()}"' in text
        assert f"since {datetime.now(UTC):%Y-%m-%d}" in text
        shop.sell()
        running.until(lambda status: status.cn == 3 and published(status))
        assert other.ask("status")["holder"]["pid"] == os.getpid()
        check_all(shop, other)
        other.end()
