"""How many records a second a store takes, and how many it gives.

    python -m benchmarks.serving [--smoke]

Real stores on this machine: a SQLite file, a PostgreSQL of its own, a Redis where there is one.
10,000 records. *Guarded upsert*: post-images with a cn, as a served view is kept up; *add if
unseen*: sums with an entry of one stream of sixteen, as view managers keep them. One call and one
client thread at a time; "together" is how many records go in a call. What is read is checked to be
what was written last.
"""

from __future__ import annotations

import argparse
import itertools
import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.place import alone
from examples.embedded_postgres import EmbeddedPostgres, place_without_spaces
from steadyview.serving.contract import Addition, Position, RecordStore
from steadyview.serving.json_texts import key_text
from steadyview.serving.layout import CHANGES, CN, DEAD, KEY, ROWS, RecordLayout, Records
from steadyview.serving.stores import open_store

RECORDS = 10_000
STREAMS = 16
TOGETHER = (1, 100, 1_000)
COLUMNS = (("k", "STRING"), ("n", "BIGINT"), ("x", "DECIMAL(18,2)"))
IMAGES = RecordLayout("images", COLUMNS, ("k",))
SUMS = RecordLayout("sums", COLUMNS, ("k",), ((ROWS, "BIGINT"), ("n", "BIGINT")))
NAMES = [f"key {i}" for i in range(RECORDS)]
KEYS = [key_text([name], ["STRING"]) for name in NAMES]


def main() -> None:
    """Measure, print a page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serving")
    parser.add_argument("--smoke", action="store_true", help="a second or two")
    seconds = 0.1 if parser.parse_args().smoke else 3.0
    with alone(), ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="steadyview-")))
        rows = [_measured(name, store, seconds) for name, store in _stores(folder, running)]
    headings = ["store", *(f"upsert, {n:,} together" for n in TOGETHER)]
    headings += [*(f"add if unseen, {n:,} together" for n in TOGETHER), "get", "get_many of 100"]
    print("# Serving stores\n")
    print(f"Records a second, {seconds:g} s each; `python -m benchmarks.serving`.\n")
    print(f"| {' | '.join(headings)} |")
    print(f"|{'---|' * len(headings)}")
    for name, numbers in rows:
        print(f"| {name} | {' | '.join(f'{n:,.0f}' for n in numbers)} |")


def _stores(folder: Path, running: ExitStack) -> Iterator[tuple[str, RecordStore]]:
    path = str(folder / "cache.db")
    yield "SQLite", _opened({"type": "sqlite", "path": path}, running)
    server = EmbeddedPostgres(place_without_spaces(folder / "postgres"))
    running.callback(server.stop)
    url = server.start().create_database("cache")
    yield "PostgreSQL", _opened({"type": "postgresql", "url": url}, running)
    if (binary := shutil.which("redis-server")) is not None:
        url = running.enter_context(_redis(binary, folder))
        yield "Redis", _opened({"type": "redis", "url": url}, running)


def _opened(settings: dict[str, Any], running: ExitStack) -> RecordStore:
    store = running.enter_context(open_store("cache", settings))
    store.prepare()
    return store


@contextmanager
def _redis(binary: str, folder: Path) -> Iterator[str]:
    socket = folder / "redis.sock"
    command = [binary, "--port", "0", "--unixsocket", str(socket), "--dir", str(folder)]
    command += ["--appendonly", "yes", "--appendfsync", "everysec", "--save", ""]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        while not socket.exists():
            time.sleep(0.01)
        yield f"unix://{socket}"
    finally:
        process.terminate()
        process.wait()


def _measured(name: str, store: RecordStore, seconds: float) -> tuple[str, list[float]]:
    dice = random.Random(1)
    images = store.begin(IMAGES, "bench", 1, "measured")
    store.switch(images, CHANGES, Position(0, 0, 0))
    sums = store.begin(SUMS, "bench", 2, "measured")
    numbers = [_rate(_upserts(store, images, n), n, seconds) for n in TOGETHER]
    numbers += [_rate(_adds(store, sums, n, dice), n, seconds) for n in TOGETHER]
    numbers += [_rate(_gets(store, images, n, dice), n, seconds) for n in (1, 100)]
    _check(store, images)
    return name, numbers


def _rate(call: Callable[[], None], records: int, seconds: float) -> float:
    call()
    calls, begun = 0, time.perf_counter()
    while (took := time.perf_counter() - begun) < seconds:
        call()
        calls += 1
    return calls * records / took


def _upserts(store: RecordStore, records: Records, together: int) -> Callable[[], None]:
    """Each call brings the next records to the next cn."""
    cns = itertools.count(store.position(records, CHANGES).entry + 1)
    starts = itertools.cycle(range(0, RECORDS, together))

    def call() -> None:
        cn, start = next(cns), next(starts)
        end = min(start + together, RECORDS)
        size = end - start
        rows = pa.table(
            {
                KEY: pa.array(KEYS[start:end]),
                "k": pa.array(NAMES[start:end]),
                "n": pa.array([cn] * size, pa.int64()),
                "x": pa.array([Decimal(cn)] * size, pa.decimal128(18, 2)),
                CN: pa.array([cn] * size, pa.int64()),
                DEAD: pa.array([False] * size),
            }
        )
        store.upsert(records, rows)
        if start + together >= RECORDS:
            store.move(records, CHANGES, cn, cn)

    return call


def _adds(
    store: RecordStore, records: Records, together: int, dice: random.Random
) -> Callable[[], None]:
    """Each call is of one stream; its entries go on where the last call's ended."""
    entries = {f"s{i}": itertools.count(time.monotonic_ns()) for i in range(STREAMS)}

    def call() -> None:
        stream = f"s{dice.randrange(STREAMS)}"
        chosen = dice.sample(range(RECORDS), together)
        given = [Addition((NAMES[i],), next(entries[stream]), {ROWS: 1, "n": i}) for i in chosen]
        store.add(records, stream, given)

    return call


def _gets(
    store: RecordStore, records: Records, together: int, dice: random.Random
) -> Callable[[], None]:
    def call() -> None:
        keys = [KEYS[dice.randrange(RECORDS)] for _ in range(together)]
        assert store.read(records, keys) is not None

    return call


def _check(store: RecordStore, records: Records) -> None:
    """Every record has the values of its cn."""
    reading = store.read(records, KEYS)
    assert reading is not None
    for found in reading.found:
        assert found.now is None or (found.now.values or {})["n"] == found.now.cn


if __name__ == "__main__":
    main()
