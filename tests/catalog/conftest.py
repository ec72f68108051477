from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from steadyview.catalog import Catalog
from tests.catalog.clocks import SetClock


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def catalog(tmp_path: Path, clock: SetClock) -> Iterator[Catalog]:
    with Catalog.create(tmp_path / "warehouse", clock) as made:
        made.sources.register("sales", "postgresql")
        made.sources.register("crm", "sqlite")
        yield made
