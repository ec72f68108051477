"""Views of steadyview in any Spark 4 session, by Spark's Python data source API.

    spark.read.format("steadyview").option("project", "shop").load("revenue_by_region")
    CREATE TEMPORARY VIEW r USING steadyview OPTIONS (project 'shop', path 'revenue_by_region')

Options: `project`, the folder with steadyview.toml (the current one by default); `path`, the view;
`at`, a commit number or a time, the newest state of each query by default. Spark finds the class by
the module's name, without registration, and imports it in every application that uses a Python data
source: so steadyview itself is imported where it is used.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    import pyarrow as pa

    from steadyview.runtime.file_reading import ReadableView, ViewPart

_PUSHING = "pyspark.sql.worker.data_source_pushdown_filters"
_OPTIONS = ("project", "path", "at")


@dataclass
class ViewPartition(InputPartition):
    """Some rows of a view."""

    part: ViewPart


class DefaultSource(DataSource):
    """One view of a project."""

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        # where the driver is; whoever reads may be elsewhere
        self._project = str(Path(options.get("project", ".")).expanduser().absolute())

    @classmethod
    def name(cls) -> str:
        """What `format` calls it."""
        return "steadyview"

    def schema(self) -> StructType:
        """The view's columns."""
        from steadyview.engine.local_rows import struct

        return struct(self._files().columns())

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader; one that takes filters where Spark has some to give.

        Spark refuses those that would take filters while that is turned off
        (spark.sql.python.filterPushdown.enabled), and gives them in a worker of its own.
        """
        files, at = self._files(), _moment(self.options.get("at"))
        made = FilteringReader if _PUSHING in _worker() else ViewReader
        return made(files, at, schema)

    def _files(self) -> ReadableView:
        from steadyview.errors import ConfigError
        from steadyview.nearest import did_you_mean
        from steadyview.runtime.file_reading import ReadableView

        for key in self.options:
            if key.lower() not in _OPTIONS:
                hint = did_you_mean(key, _OPTIONS) or f"options are {', '.join(_OPTIONS)}"
                raise ConfigError(f'there is no option "{key}"', hint=hint)
        view = self.options.get("path")
        if not view:
            raise ConfigError(
                "no view is named", hint='.option("project", "shop").load("revenue_by_region")'
            )
        return ReadableView(self._project, view)


class ViewReader(DataSourceReader):
    """Reads a view's rows as Arrow batches."""

    def __init__(self, files: ReadableView, at: int | str | None, schema: StructType) -> None:
        self._files = files
        self._at = at
        self._schema = schema
        self._wanted: Any = None

    def partitions(self) -> Sequence[InputPartition]:
        """The rows as of now, or of the moment asked for, in parts."""
        from steadyview.engine.local_rows import struct
        from steadyview.errors import OutsideRetention

        if struct(self._files.columns()) != self._schema:
            raise OutsideRetention(
                "the view has other columns than when it was loaded", hint="load it again"
            )
        return [ViewPartition(part) for part in self._files.parts(self._at, self._wanted)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one part."""
        assert isinstance(partition, ViewPartition)
        for rows in partition.part.rows(self._wanted):
            yield from rows.to_batches()


class FilteringReader(ViewReader):
    """The same, with the filters that mean the same to Arrow as to Spark."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Take what can be taken; the others are returned, for Spark."""
        from pyspark_steadyview.filters import expression

        for one in filters:
            found = expression(one, self._schema)
            if found is None:
                yield one
            else:
                self._wanted = found if self._wanted is None else self._wanted & found


def _moment(text: str | None) -> int | str | None:
    """A commit number, or a time as it is written."""
    if text is None:
        return None
    return int(text) if text.strip().isdigit() else text


def _worker() -> set[str]:
    """The modules of this process, with that which it was started as."""
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return {*sys.modules, *([main.name] if main is not None else [])}
