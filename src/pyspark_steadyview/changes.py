"""A view's changes in Spark: as a stream, or those of some commits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from secrets import token_hex
from time import monotonic
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow

if TYPE_CHECKING:
    import pyarrow as pa

    from steadyview.runtime.change_reading import ChangePart, ReadableChanges, StatePart


_EVERY = 600.0


@dataclass
class Partition(InputPartition):
    """Some rows of a state, or of changes."""

    part: StatePart | ChangePart

    def batches(self) -> Iterator[pa.RecordBatch]:
        """These rows."""
        for rows in self.part.tables():
            yield from rows.to_batches()


class ChangeStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The state at which it begins is the first batch; each later one is some whole commits.

    Its offsets are those of `change_reading`, which Spark keeps in the query's checkpoint.
    """

    def __init__(self, changes: ReadableChanges, start: int | str) -> None:
        self._changes = changes
        self._start = start
        self._reader = token_hex(8)
        """This life of the stream, among all that read the view."""
        self._again = 0.0
        """When it says next that it is still there, if nothing happens."""
        self._upto: int | None = None

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """End with what there is now."""
        self._upto = self._changes.reach()

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Before the first state."""
        return asdict(self._changes.before())

    def latestOffset(self, start: dict[str, Any], limit: object) -> dict[str, int]:  # noqa: N802
        """Up to the last change; of the first batch, the cn of the state."""
        from steadyview.runtime.change_reading import BEFORE, offset_of

        known = offset_of(start)
        while True:
            found = self._changes.first(self._start) if known.cn == BEFORE else None
            found = found or self._changes.latest(known, self._upto)
            if found == known and monotonic() < self._again:
                return asdict(found)
            # before Spark writes it down: what it was told stays, also if it asks once more
            if self._changes.hand_out(self._reader, known, found):
                self._again = monotonic() + _EVERY
                return asdict(found)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """What leads from one offset to the other."""
        from steadyview.runtime.change_reading import offset_of

        after, upto = offset_of(start), offset_of(end)
        # a batch that another life was told of
        self._changes.hand_out(self._reader, after, upto)
        return [Partition(part) for part in self._changes.parts(after, upto)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one part."""
        assert isinstance(partition, Partition)
        return partition.batches()

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing is kept for a stream: there is nothing to let go."""

    def stop(self) -> None:
        """Nothing is open."""


class ChangeReader(DataSourceReader):
    """The changes after a commit, up to the last one."""

    def __init__(self, changes: ReadableChanges, start: int | str) -> None:
        self._changes = changes
        self._start = start

    def partitions(self) -> Sequence[InputPartition]:
        """The changes there are now, in parts."""
        first = self._changes.first(self._start)
        return [Partition(p) for p in self._changes.parts(first, self._changes.latest(first))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one part; Spark makes one without any where there are no parts."""
        return partition.batches() if isinstance(partition, Partition) else iter(())
