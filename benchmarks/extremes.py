"""MIN over one group of many different values: seconds a batch of 50 changes, warm.

    python -m benchmarks.extremes [--values 10000 300000] [--batches 8] [--smoke]

One SQLite file. Half of the changes of a batch bring new values, half take values away, the least
one first. Then batches of 2,000 values each of which is the greatest so far. From freezing the
source to publication; the changes are captured by then. Every size ends with what SQLite says.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import statistics
import tempfile
import time
from contextlib import closing
from pathlib import Path

from benchmarks.by_hand import ByHand, opened

CHANGES, RISING, WARM_UP = 50, 2_000, 4
VIEWS = {
    "least": "SELECT kind, MIN(value) AS low, COUNT(*) AS n FROM s.t GROUP BY kind",
    "ends": "SELECT MIN(value) AS low, MAX(value) AS high FROM s.t",
}
PROJECT = """[project]
name = "extremes"
warehouse = "warehouse"
[sources.s]
type = "sqlite"
path = "s.db"
tables = ["t"]
"""


class Values:
    """One table with one group of different values."""

    def __init__(self, path: Path, many: int) -> None:
        self._path, self._dice, self._next = path, random.Random(1), many
        self._highest = 10 * many
        values = self._dice.sample(range(self._highest), many)
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, kind INTEGER, value INTEGER)")
            db.execute("CREATE INDEX by_value ON t (value)")
            db.executemany("INSERT INTO t VALUES (?, 1, ?)", enumerate(values))

    def change(self) -> None:
        """Values come, and others go, in ten transactions."""
        least = "DELETE FROM t WHERE value = (SELECT MIN(value) FROM t)"
        any_other = "DELETE FROM t WHERE id = ?"
        with closing(sqlite3.connect(self._path)) as db:
            for _ in range(10):
                db.execute(least)
                for _ in range(CHANGES // 20):
                    self._insert(db, self._dice.randrange(self._highest))
                for _ in range(CHANGES // 20 - 1):
                    db.execute(any_other, (self._dice.randrange(self._next),))
                db.commit()

    def rise(self) -> None:
        """Each of many new values is the greatest, in a hundred transactions."""
        with closing(sqlite3.connect(self._path)) as db:
            for _ in range(100):
                for _ in range(RISING // 100):
                    self._highest += 1
                    self._insert(db, self._highest)
                db.commit()
                time.sleep(0.025)  # a look at the file takes all that was committed since the last

    def _insert(self, db: sqlite3.Connection, value: int) -> None:
        self._next += 1
        db.execute("INSERT INTO t VALUES (?, 1, ?)", (self._next, value))

    def truth(self) -> dict[str, list[tuple[int, ...]]]:
        """The views' rows."""
        with closing(sqlite3.connect(self._path)) as db:
            texts = {name: sql.replace("s.t", "t") for name, sql in VIEWS.items()}
            return {name: db.execute(sql).fetchall() for name, sql in texts.items()}


def main() -> None:
    """Measure each size, print, compare."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.extremes")
    parser.add_argument("--values", type=int, nargs="+", default=[10_000, 300_000])
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--smoke", action="store_true", help="500 values, one batch")
    asked = parser.parse_args()
    for many in [500] if asked.smoke else asked.values:
        with tempfile.TemporaryDirectory() as place:
            _size(Path(place), many, 1 if asked.smoke else asked.batches)


def _size(folder: Path, many: int, batches: int) -> None:
    values = Values(folder / "s.db", many)
    (folder / "steadyview.toml").write_text(PROJECT)
    (folder / "views").mkdir()
    for name, text in VIEWS.items():
        (folder / "views" / f"{name}.sql").write_text(text)
    with opened(folder) as kept:
        _measure(kept, values, many, batches)
        for name, rows in values.truth().items():
            found = kept.warehouse.query(f"SELECT * FROM {name}").collect()
            assert [tuple(row) for row in found] == rows, (name, found, rows)


def _measure(kept: ByHand, values: Values, many: int, batches: int) -> None:
    print(f"{many:,} values: first states {kept.build():.1f} s", flush=True)
    for change, what in ((values.change, f"{CHANGES} changes"), (values.rise, "rising")):
        taken = []
        for _ in range(WARM_UP + batches):
            change()
            kept.capture()
            taken.append(kept.refresh_all())
        median, worst = statistics.median(taken[WARM_UP:]), max(taken[WARM_UP:])
        print(f"{many:,} values, {what}: median {median:.2f} s, worst {worst:.2f}", flush=True)


if __name__ == "__main__":
    main()
