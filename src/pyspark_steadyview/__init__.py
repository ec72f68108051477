"""Views of steadyview in any Spark 4 session, by Spark's Python data source API.

    spark.read.format("steadyview").option("project", "shop").load("revenue_by_region")
    spark.readStream.format("steadyview").option("changes", True).load("revenue_by_region")
    CREATE TEMPORARY VIEW r USING steadyview OPTIONS (project 'shop', path 'revenue_by_region')

Options: `project`, the folder with steadyview.toml (the current one by default); `path`, the view;
`at`, a commit number or a time, the newest state of each query by default; `changes`, to read the
view's changes, and `from`, where they begin. A stream has to say `changes`: Spark asks for the
columns before it tells that it wants a stream. Spark finds the class by the module's name, without
registration, and imports it in every application that uses a Python data source: so steadyview
itself is imported where it is used.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    Filter,
    InputPartition,
)
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    import pyarrow as pa

    from steadyview.runtime.change_reading import ReadableChanges
    from steadyview.runtime.file_reading import ReadableView, ViewPart

_PUSHING = "pyspark.sql.worker.data_source_pushdown_filters"
_OPTIONS = ("project", "path", "at", "changes", "from")
_YES, _NO = ("true", "yes", "1"), ("false", "no", "0")


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
        """The view's columns; with its changes also `_count`, `_cn` and `_time`."""
        from steadyview.engine.local_rows import struct

        read = self._changes() if self._wants_changes() else self._files()
        return struct(read.columns())

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader; one that takes filters where Spark has some to give.

        Spark refuses those that would take filters while that is turned off
        (spark.sql.python.filterPushdown.enabled), and gives them in a worker of its own.
        """
        if self._wants_changes():
            from pyspark_steadyview.changes import ChangeReader

            return ChangeReader(self._changes(), self._from("start"))
        files, at = self._files(), _moment(self.options.get("at"))
        made = FilteringReader if _PUSHING in _worker() else ViewReader
        return made(files, at, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's
        """The view's state, then its changes."""
        from pyspark_steadyview.changes import ChangeStream
        from steadyview.errors import ConfigError

        if not self._wants_changes():
            raise ConfigError(
                "a stream gives a view's changes, with columns of their own",
                hint='say so: .option("changes", True)',
            )
        return ChangeStream(self._changes(), self._from("now"))

    def _wants_changes(self) -> bool:
        from steadyview.errors import ConfigError

        said = str(self.options.get("changes", "from" in self.options)).lower()
        if said not in (*_YES, *_NO):
            raise ConfigError(f'option "changes" is true or false, not "{said}"')
        return said in _YES

    def _from(self, default: str) -> int | str:
        found = str(self.options.get("from", default)).strip().lower()
        return int(found) if found.isdigit() else found

    def _changes(self) -> ReadableChanges:
        from steadyview.errors import ConfigError
        from steadyview.runtime.change_reading import ReadableChanges

        if "at" in self.options:
            raise ConfigError('option "at" is for states', hint='changes begin at "from"')
        return ReadableChanges(self._project, self._view())

    def _files(self) -> ReadableView:
        from steadyview.runtime.file_reading import ReadableView

        return ReadableView(self._project, self._view())

    def _view(self) -> str:
        """The view's name, if all options are known."""
        from steadyview.errors import ConfigError
        from steadyview.nearest import did_you_mean

        for key in self.options:
            if key.lower() not in _OPTIONS:
                hint = did_you_mean(key, _OPTIONS) or f"options are {', '.join(_OPTIONS)}"
                raise ConfigError(f'there is no option "{key}"', hint=hint)
        view: str | None = self.options.get("path")
        if not view:
            raise ConfigError(
                "no view is named", hint='.option("project", "shop").load("revenue_by_region")'
            )
        return view


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
