"""What every store can do, and what it promises.

Per record, each in one atomic operation, whoever else is at it:

    upsert         put a post-image, or a tombstone, if the stored cn is less than its cn;
                   an absent record has the floor as its cn
    add            add to sums if the stored entry of the stream is less than the entry given;
                   an absent record has the floor of the stream; at 0 rows it becomes a tombstone
    put            put values if the stored entry of the stream is less than the entry given
    test_and_set   put values, or a tombstone, if the stored signature is the one expected;
                   an absent record has the floors as its signature

Many records go in one call; each is still on its own, and none waits for the others' success. A
call that failed may have done any of them, and is simply made again.

`_was_...` is the newest version with a cn up to the *watermark*, the position of the stream
`changes`: so whoever reads watermark and records in one statement has every record as of one cn.
That needs of the writer: a batch that is done again ends no earlier than it did before.
Positions and floors only grow. They are durable no earlier than what was written before them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from steadyview.errors import StoreRefused
from steadyview.serving.layout import RecordLayout, Records

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = 1
Entries = Mapping[str, int]
"""A signature of records kept from the update log: the last entry applied, by stream."""


@dataclass(frozen=True)
class Position:
    """How far a stream has come, `time` (microseconds) of that entry's commit, and its floor."""

    entry: int
    time: int
    floor: int


@dataclass(frozen=True)
class ServedView:
    """What the registry knows of a view: the records that are read, None while there are none yet.

    `warehouse`: the identity of the one that writes it. `error`: why it is not kept up. `wanted`:
    somebody asked for a rebuild. `rebuilt`: why it was written anew last, as `begun`, of which
    perhaps nothing is read yet.
    """

    view: str
    warehouse: str
    records: Records | None
    error: str | None = None
    wanted: bool = False
    rebuilt: str | None = None
    begun: Records | None = None


@dataclass(frozen=True)
class Version:
    """What a record is, or was: its values without the key's, by name; None: it is gone."""

    cn: int
    values: Mapping[str, Any] | None


@dataclass(frozen=True)
class Found:
    """A record as it is stored: its present version and the one before, where there are such."""

    now: Version | None = None
    was: Version | None = None

    def at(self, cn: int) -> Version | None:
        """The version at a cn; None: it was not there. LookupError if neither is so old."""
        if self.now is None or self.now.cn <= cn:
            return self.now
        if self.was is None or self.was.cn <= cn:
            return self.was
        raise LookupError(cn)


@dataclass(frozen=True)
class Reading:
    """Records of one moment: the watermark, and per key what is stored, in the order asked for."""

    position: Position
    found: Sequence[Found]


@dataclass(frozen=True)
class Counts:
    """How many records there are, and how many tombstones."""

    records: int
    tombstones: int


@dataclass(frozen=True)
class Addition:
    """What an entry of a stream adds to a record: `key` values and `sums`, by name."""

    key: tuple[Any, ...]
    entry: int
    sums: Mapping[str, Any]


@dataclass(frozen=True)
class Put:
    """What an entry of a stream makes a record: `values` by name, None: it is gone."""

    key: tuple[Any, ...]
    entry: int
    values: Mapping[str, Any] | None


@dataclass(frozen=True)
class Signed:
    """A record as a view manager reads it: absent and dead ones have no values, but a signature."""

    values: Mapping[str, Any] | None
    signature: Entries = field(default_factory=dict)


@dataclass(frozen=True)
class TestAndSet:
    """insertTAS, updateTAS and deleteTAS: make it `values` and `signature`, if it is `expected`.

    `there`: whether it has to be there (update, delete) or must not be (insert).
    """

    __test__ = False

    key: tuple[Any, ...]
    expected: Entries
    there: bool
    values: Mapping[str, Any] | None
    signature: Entries


class RecordStore(ABC):
    """One store. For one thread at a time; executors and other threads open their own.

    Everything may raise StoreUnavailable (later, the same may succeed) or StoreRefused.
    """

    name: str

    # --- the registry ------------------------------------------------------------------------

    @abstractmethod
    def prepare(self) -> None:
        """Make the registry if there is none; StoreRefused if something else has its names."""

    @abstractmethod
    def identity(self) -> str | None:
        """What tells this store from any other; None: it has no registry."""

    @abstractmethod
    def views(self) -> list[ServedView]:
        """All that it serves or is to serve, by name; none without a registry."""

    def find(self, view: str) -> ServedView | None:
        """The view of that name, without regard to case."""
        return next((v for v in self.views() if v.view.lower() == view.lower()), None)

    @abstractmethod
    def begin(self, layout: RecordLayout, warehouse: str, node: int, why: str) -> Records:
        """Empty records of a new incarnation, which nobody reads yet; its number is never reused.

        The stream `changes` of a change table's records is at -1: there is a state at cn 0.

        StoreRefused if the store has something else under the view's name, or another warehouse
        serves a view of that name there.
        """

    @abstractmethod
    def switch(self, records: Records, stream: str, position: Position) -> None:
        """Let these records be read, at this position of their stream, instead of older ones."""

    @abstractmethod
    def sweep(self, view: str) -> int:
        """Remove records of incarnations that are not read; how many such there were."""

    @abstractmethod
    def forget(self, view: str) -> None:
        """Remove the view with all its records. Idempotent."""

    @abstractmethod
    def tell(self, view: str, error: str | None) -> None:
        """Why the view is not kept up; None: it is."""

    @abstractmethod
    def want(self, view: str) -> None:
        """Ask whoever keeps the view for a rebuild; the next `switch` ends that."""

    @abstractmethod
    def position(self, records: Records, stream: str) -> Position:
        """How far a stream has come; entry 0 and floor 0 where nothing is known of it."""

    @abstractmethod
    def positions(self, records: Records) -> dict[str, Position]:
        """The same of all its streams."""

    @abstractmethod
    def move(self, records: Records, stream: str, entry: int, time: int) -> None:
        """All entries of the stream up to this one are in the records. Never goes back."""

    # --- records of a change table -----------------------------------------------------------

    @abstractmethod
    def upsert(self, records: Records, images: pa.Table) -> None:
        """Put post-images: `_key`, the view's columns, `_cn`, `_dead`; a key once."""

    @abstractmethod
    def there(self, records: Records, keys: Sequence[str]) -> tuple[int, list[str]]:
        """The watermark, and which of these keys had a record then."""

    @abstractmethod
    def reclaim(self, records: Records, stream: str, floor: int) -> int:
        """Raise the stream's floor, then drop tombstones that it covers; how many that were."""

    # --- records kept from the update log ----------------------------------------------------

    @abstractmethod
    def add(self, records: Records, stream: str, additions: Sequence[Addition]) -> None:
        """Apply-if-unseen. Additions to one record come in the order of their entries."""

    @abstractmethod
    def put(self, records: Records, stream: str, puts: Sequence[Put]) -> None:
        """Guarded upsert by a stream's entry. Puts of one record come in the order of entries."""

    @abstractmethod
    def signed(self, records: Records, keys: Sequence[tuple[Any, ...]]) -> list[Signed]:
        """The records as they are, each read atomically."""

    @abstractmethod
    def test_and_set(self, records: Records, tests: Sequence[TestAndSet]) -> list[bool]:
        """Which of them passed, each on its own."""

    def shown(self, records: Records, keys: Sequence[str]) -> list[Signed] | None:
        """What readers see of records by their keys' texts, each read atomically.

        None: these records are no longer the ones that are read.
        """
        raise self._no_log()

    def settled(
        self, records: Records
    ) -> AbstractContextManager[tuple[dict[str, Position] | None, Iterator[pa.Table]]]:
        """The positions and the rows at exactly them, in pieces, all of one moment.

        None: some record is ahead of what is registered.
        """
        raise self._no_log()

    def _no_log(self) -> StoreRefused:
        return StoreRefused(
            f'store "{self.name}" has no records that are kept straight from the update log',
            hint="serve the view from its changes: leave 'steadyview.serve.from' out",
        )

    # --- reading -----------------------------------------------------------------------------

    @abstractmethod
    def read(self, records: Records, keys: Sequence[str]) -> Reading | None:
        """Records by their keys' texts, and the watermark, all of one moment.

        None: these records are no longer the ones that are read.
        """

    @abstractmethod
    def rows(self, records: Records) -> AbstractContextManager[tuple[int, Iterator[pa.Table]]]:
        """The watermark, and the view's rows at it, in pieces."""

    @abstractmethod
    def counts(self, records: Records) -> Counts:
        """How many records and tombstones there are."""

    @abstractmethod
    def close(self) -> None:
        """Give its connection back. Safe to call twice."""

    def __enter__(self) -> RecordStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
