"""Delta tables through `deltalake` alone: exactly-once commits, file lists, Parquet files.

Belongs here: how a table of the warehouse is created, written and listed, whoever wrote its Parquet
files. Does not belong here: what the rows mean (`update_log`, `warehouse`), Spark (`engine`).
Laws: exactly once (law 7); nothing is deleted that a reader within the retention may still read.
"""

from steadyview.delta.files import AddedFile, FileEntry
from steadyview.delta.names import slug
from steadyview.delta.parquet import ParquetSink
from steadyview.delta.table import Table

__all__ = ["AddedFile", "FileEntry", "ParquetSink", "Table", "slug"]
