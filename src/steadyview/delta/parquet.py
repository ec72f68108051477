"""Writing one Parquet file in pieces, readable by Spark and by every Delta reader.

Microsecond timestamps (never INT96), decimals as Spark writes them. The file is listed nowhere
until a commit names it, so a half-written one is litter, not damage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from steadyview.delta.durability import make_folder, sync_file, sync_folder
from steadyview.delta.failures import file_damaged, told
from steadyview.delta.files import AddedFile
from steadyview.errors import StorageDamaged

CHECKED = ds.ParquetFileFormat(
    default_fragment_scan_options=ds.ParquetFragmentScanOptions(page_checksum_verification=True)
)
"""The format of every file that is read here: a page that is not what was written is an error."""


class ParquetSink:
    """One growing file at `path` below the table's `root`.

    Tracks rows and the ranges of the bigint columns `ranged`. Nothing is kept in memory but the
    piece being written.
    """

    def __init__(
        self, root: Path, path: Path, schema: pa.Schema, ranged: tuple[str, ...] = ()
    ) -> None:
        self.path = path
        self.rows = 0
        self._root = root
        self._schema = schema
        self._ranged = ranged
        self._ranges: dict[str, tuple[int, int]] = {}
        with told(path):
            make_folder(path.parent)
            self._writer = pq.ParquetWriter(
                path,
                schema,
                compression="zstd",
                coerce_timestamps="us",
                store_decimal_as_integer=True,
                write_page_checksum=True,
            )

    def write(self, rows: pa.Table) -> None:
        """Append rows; columns the piece lacks are NULL, unknown ones are refused."""
        if not rows.num_rows:
            return
        piece = _shaped(rows, self._schema)
        with told(self.path):
            self._writer.write_table(piece)
        self.rows += piece.num_rows
        for column in self._ranged:
            self._widen(column, pc.min_max(piece.column(column)).as_py())

    def close(self) -> AddedFile:
        """Finish the file; when this returns it is on the disk and can be committed."""
        with told(self.path):
            self._writer.close()
            sync_file(self.path)
            sync_folder(self.path.parent)
            size = self.path.stat().st_size
        relative = self.path.relative_to(self._root).as_posix()
        return AddedFile(relative, size, self.rows, dict(self._ranges))

    def abandon(self) -> None:
        """Give up: leave no file behind. Safe after `close` and after a full disk."""
        try:
            self._writer.close()
            self.path.unlink(missing_ok=True)
        except OSError:
            self.path.unlink(missing_ok=True)

    def _widen(self, column: str, found: dict[str, int]) -> None:
        low, high = self._ranges.get(column, (found["min"], found["max"]))
        self._ranges[column] = (min(low, found["min"]), max(high, found["max"]))


@contextmanager
def reading(table: Path, files: Iterable[str]) -> Iterator[None]:
    """Whatever goes wrong while these files of a table are read; names the one that is damaged."""
    try:
        with told(table):
            yield
    except StorageDamaged as error:
        bad = next((f for f in map(Path, files) if f.exists() and not _readable(f)), None)
        if bad is None:
            raise
        raise file_damaged(bad, str(error.detail)) from error


def _readable(path: Path) -> bool:
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            for _ in file.iter_batches():
                pass
    except (OSError, pa.ArrowException):
        return False
    return True


def _shaped(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with exactly the schema's columns and types; lossy casts are refused."""
    unknown = set(rows.column_names) - set(schema.names)
    if unknown:
        raise ValueError(f"columns {sorted(unknown)} are not in the file's schema")
    present = set(rows.column_names)
    columns = [
        rows.column(f.name).cast(f.type) if f.name in present else pa.nulls(rows.num_rows, f.type)
        for f in schema
    ]
    return pa.table(columns, schema=schema)
