"""Bags with signed counts that Spark has computed, or can compute: the handles of the view algebra.

A handle knows its columns (`Form`), how its rows are written as SQL, and, once computed, in which
Parquet files they lie. Nothing runs before somebody asks: a text grows over the texts of its
inputs, and stops at inputs that are stored.

Temporary views and files of stored rows go when no handle uses them any more (`Storage.tidy`);
never from within a finalizer, which may run in the middle of a call to Spark.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from steadyview.delta.failures import told
from steadyview.engine.failures import spark_told
from steadyview.engine.frames import Frames
from steadyview.engine.window_input import ARROW_LIMIT

COUNT = "_count"
FEW = 1_000
"""Up to so many rows are kept in memory beside their file."""


@dataclass(frozen=True)
class Form:
    """Columns of a bag: those that make a row what it is, then what is summed over equal rows.

    `bound`: the positions that joined rows bind; empty for rows of a relation and view rows.
    """

    names: tuple[str, ...]
    types: tuple[str, ...]
    measures: tuple[tuple[str, str], ...] = ((COUNT, "BIGINT"),)
    bound: frozenset[int] = frozenset()

    @property
    def listed(self) -> str:
        """Every column, for a SELECT."""
        return ", ".join([*self.names, *(name for name, _ in self.measures)])

    @property
    def ddl(self) -> str:
        """Every column as a Spark schema."""
        own = [f"{n} {t}" for n, t in zip(self.names, self.types, strict=True)]
        return ", ".join([*own, *(f"{n} {t}" for n, t in self.measures)])

    def net(self, rows: str) -> str:
        """Distinct rows of the query `rows` with their summed measures, those that are zero out."""
        total = ", ".join(f"CAST(COALESCE(SUM({n}), 0) AS {t}) AS {n}" for n, t in self.measures)
        listed = "".join(f"{n}, " for n in self.names)
        group = f" GROUP BY {', '.join(self.names)}" if self.names else ""
        changed = " OR ".join(f"{n} <> 0" for n, _ in self.measures)
        return f"SELECT * FROM (SELECT {listed}{total} FROM ({rows}){group}) WHERE {changed}"


@dataclass(eq=False)
class Stored:
    """Rows in files. `counted`: they carry their measures; otherwise each is one copy.

    `table`: few rows are kept at hand as well.
    """

    paths: tuple[str, ...]
    rows: int
    counted: bool = True
    view: str | None = None
    table: pa.Table | None = None


@dataclass(eq=False)
class Handle:
    """A bag. `text` writes its rows as a query; `stored` holds them once they are computed.

    `sign`: every count is above (1) or below (-1) zero, 0: there is no row; None: not known.
    `certain`: it has rows, without computing it. `weight`: how many stored rows it is made of.
    """

    form: Form
    text: Callable[[], str]
    inputs: tuple[Handle, ...] = ()
    sign: int | None = None
    certain: bool = False
    weight: int = 0
    depth: int = 0
    stored: Stored | None = field(default=None, repr=False)

    @property
    def known_empty(self) -> bool:
        """Whether it is known to have no rows."""
        return self.sign == 0

    @property
    def known_filled(self) -> bool:
        """Whether it is known to have rows."""
        return self.certain and self.sign is not None


class Storage:
    """Where the handles of one view are stored: a folder, and temporary views over its files."""

    def __init__(self, frames: Frames, folder: Path) -> None:
        self.frames = frames
        self._folder = folder
        self._numbers = count(1)
        self._garbage: deque[tuple[tuple[str, ...], list[str]]] = deque()

    def path(self, label: str) -> Path:
        """A new name in the folder."""
        return self._folder / f"{label}-{next(self._numbers):06d}.parquet"

    def leaf(self, form: Form, table: pa.Table, sign: int | None = None) -> Handle:
        """Rows at hand, with their counts."""
        if not table.num_rows:
            return nothing(form)
        path = self.path("rows")
        with told(self._folder):
            pq.write_table(table, path, compression="none", store_decimal_as_integer=True)
        at_hand = table if table.num_rows <= FEW else None
        return self.found(form, Stored((str(path),), table.num_rows, table=at_hand), sign)

    def found(self, form: Form, stored: Stored, sign: int | None) -> Handle:
        """A handle of files in the folder, which become its own."""
        if not stored.rows:
            return nothing(form)
        names: list[str] = []
        weakref.finalize(stored, self._garbage.append, (stored.paths, names))

        def text() -> str:
            if stored.view is None:
                ddl = form.ddl if stored.counted else form.ddl.rsplit(f", {COUNT} ", 1)[0]
                stored.view = self.frames.parquet("bag", list(stored.paths), ddl)
                names.append(stored.view)
            listed = form.listed
            if not stored.counted:
                listed = ", ".join([*form.names, f"1L AS {COUNT}"])
            return f"SELECT {listed} FROM {stored.view}"

        certain = sign is not None
        return Handle(form, text, (), sign, certain, stored.rows, 0, stored)

    def compute(self, handle: Handle) -> None:
        """Carry it out now, equal rows summed; afterwards it is stored."""
        small = handle.weight <= ARROW_LIMIT
        with spark_told(self._folder):
            frame = self.frames.spark.sql(handle.form.net(handle.text()))
            if small:
                table = frame.toArrow()
                found = self.leaf(handle.form, table, sign_of(table))
            else:
                path = self.path("bag")
                frame.write.mode("overwrite").parquet(str(path))
                files = tuple(sorted(str(p) for p in path.glob("*.parquet")))
                rows = sum(pq.read_metadata(f).num_rows for f in files)
                found = self.found(handle.form, Stored(files, rows), None)
        handle.text, handle.stored, handle.inputs = found.text, found.stored, ()
        handle.sign, handle.certain = found.sign, bool(found.weight)
        handle.weight, handle.depth = found.weight, 0

    def tidy(self) -> None:
        """Drop what no handle uses any more."""
        while self._garbage:
            paths, names = self._garbage.popleft()
            for name in names:
                self.frames.drop_one(name)
            for path in paths:
                Path(path).unlink(missing_ok=True)


def nothing(form: Form) -> Handle:
    """A bag without rows, which is never asked of Spark."""
    types = [*zip(form.names, form.types, strict=True), *form.measures]
    listed = ", ".join(f"CAST(NULL AS {t}) AS {n}" for n, t in types)
    return Handle(form, lambda: f"SELECT {listed} WHERE FALSE", sign=0)


def made(
    form: Form,
    text: Callable[[], str],
    inputs: Sequence[Handle],
    *,
    sign: int | None = None,
    certain: bool = False,
) -> Handle:
    """A handle over others."""
    weight = sum(h.weight for h in inputs)
    depth = 1 + max(h.depth for h in inputs)
    return Handle(form, text, tuple(inputs), sign, certain, weight, depth)


def stored_rows(handle: Handle) -> pa.Table:
    """The rows of a stored handle, or of one known to be empty; for small ones only."""
    if handle.stored is None:
        assert handle.known_empty
        return pa.table({})
    if handle.stored.table is None:
        found = pa.concat_tables([pq.read_table(p) for p in handle.stored.paths])
        if found.num_rows > FEW:
            return found
        handle.stored.table = found
    return handle.stored.table


def sign_of(table: pa.Table) -> int | None:
    """Whether all counts have one sign."""
    if not table.num_rows:
        return 0
    extremes = pc.min_max(table[COUNT])
    if extremes["min"].as_py() > 0:
        return 1
    return -1 if extremes["max"].as_py() < 0 else None
