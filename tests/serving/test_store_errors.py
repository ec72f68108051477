"""What a store says when it cannot be had: without its password, and whether waiting helps."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from steadyview.errors import ConfigError, StoreRefused, StoreUnavailable
from steadyview.serving.layout import RecordLayout
from steadyview.serving.stores import open_store
from tests.serving.stores import place

SECRET = "p%40ss%2Fw0rd"
PLAIN = "p@ss/w0rd"


@pytest.fixture
def nobody() -> Iterator[int]:
    """A port at which nobody answers."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.mark.parametrize("family", ["postgresql", "redis"])
def test_a_server_that_is_down_is_told_without_its_password(family: str, nobody: int) -> None:
    if family == "redis":
        pytest.importorskip("redis", reason="pip install 'steadyview[redis]'")
    url = f"{family}://me:{SECRET}@127.0.0.1:{nobody}/0"
    with (
        open_store("cache", {"type": family, "url": url}) as store,
        pytest.raises(StoreUnavailable, match='store "cache" does not answer') as told,
    ):
        store.prepare()
    assert SECRET not in repr(told.value) + str(told.value)
    assert PLAIN not in repr(told.value) + str(told.value)


@pytest.mark.parametrize("family", ["postgresql", "redis"])
def test_a_wrong_password_is_told_without_it(family: str, tmp_path: Path) -> None:
    if family == "postgresql":
        url = f"postgresql://nobody:{SECRET}@/nowhere?host={tmp_path}"
        with place("postgresql", tmp_path) as there:
            from psycopg.conninfo import make_conninfo

            url = make_conninfo(there.settings["url"], user="nobody", password=PLAIN)
            refused(family, url)
    else:
        with place("redis", tmp_path) as there:
            refused(family, there.settings["url"].replace("s3cret%21", SECRET))


def refused(family: str, url: str) -> None:
    with (
        open_store("cache", {"type": family, "url": url}) as store,
        pytest.raises(StoreRefused) as told,
    ):
        store.prepare()
    assert PLAIN not in str(told.value)
    assert SECRET not in str(told.value)


@pytest.mark.parametrize("url", ["nonsense: password=hunter2", "redis//x:hunter2"])
@pytest.mark.parametrize("family", ["postgresql", "redis"])
def test_a_url_that_cannot_be_read_is_not_quoted(family: str, url: str) -> None:
    if family == "redis":
        pytest.importorskip("redis", reason="pip install 'steadyview[redis]'")
    with pytest.raises(ConfigError) as told:
        open_store("cache", {"type": family, "url": url}).prepare()
    assert "hunter2" not in str(told.value)


def test_a_file_that_is_no_database_is_refused_and_a_missing_folder_may_come(
    tmp_path: Path,
) -> None:
    (tmp_path / "text").write_text("no database, whatever its name says\n" * 100)
    with (
        open_store("cache", {"type": "sqlite", "path": str(tmp_path / "text")}) as store,
        pytest.raises(StoreRefused, match="refused"),
    ):
        store.prepare()
    away = {"type": "sqlite", "path": str(tmp_path / "away" / "cache.db")}
    with open_store("cache", away) as store, pytest.raises(StoreUnavailable):
        store.prepare()


def test_a_full_file_is_told_and_loses_nothing(tmp_path: Path) -> None:
    layout = RecordLayout("v", (("k", "INT"), ("x", "STRING")), ("k",))
    with place("sqlite", tmp_path) as there, there.open() as store:
        store.prepare()
        records = store.begin(layout, "w", 1, "new")
        store._connection().execute("PRAGMA max_page_count = 40")  # type: ignore[attr-defined]
        import pyarrow as pa

        from steadyview.serving.writing import Batch, write

        rows = pa.table({"k": pa.array([1, 2], pa.int32()), "x": ["a", "b" * 500_000]})
        with pytest.raises(StoreUnavailable, match="does not answer"):
            write(store, Batch(records, 1), rows)
        write(store, Batch(records, 1), rows)
        assert store.counts(records).records == 2
