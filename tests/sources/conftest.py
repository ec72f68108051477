"""Fixtures: a world per family."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sources.world import WORLDS, PostgresWorld, SqliteWorld, World


@pytest.fixture(params=sorted(WORLDS))
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """The same test, once per source family."""
    made = WORLDS[request.param](tmp_path)
    yield made
    made.close()


@pytest.fixture
def postgres(tmp_path: Path) -> Iterator[PostgresWorld]:
    made = PostgresWorld(tmp_path)
    yield made
    made.close()


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[SqliteWorld]:
    made = SqliteWorld(tmp_path)
    yield made
    made.close()
