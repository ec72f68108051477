"""The catalog as one object: sources, commits, views and batches over the same file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from steadyview.catalog.audits import Audits
from steadyview.catalog.batches import BatchRecords
from steadyview.catalog.builds import Builds
from steadyview.catalog.clock import Clock
from steadyview.catalog.commits import Commits
from steadyview.catalog.database import Database
from steadyview.catalog.files import FileChanges
from steadyview.catalog.gaps import Gaps
from steadyview.catalog.gates import BoundTimes
from steadyview.catalog.holds import Holds
from steadyview.catalog.refreshes import Refreshes
from steadyview.catalog.sources import Sources
from steadyview.catalog.stream_leases import StreamLeases
from steadyview.catalog.streams import Streams
from steadyview.catalog.subscriptions import Subscriptions
from steadyview.catalog.typed import Typed
from steadyview.catalog.views import Views
from steadyview.errors import StorageDamaged, StorageUnavailable
from steadyview.fencing import fenced
from steadyview.modes import make_root

FILE = "catalog.db"


class Catalog:
    """`<warehouse>/catalog.db`. For several threads; other processes may read meanwhile."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self.path = database.path
        self.sources = Sources(database)
        self.commits = Commits(database, clock)
        self.views = Views(database, clock)
        self.batches = BatchRecords(database)
        self.typed = Typed(database)
        self.audits = Audits(database)
        self.builds = Builds(database)
        self.gaps = Gaps(database)
        self.gates = BoundTimes(database)
        self.holds = Holds(database)
        self.refreshes = Refreshes(database)
        self.subscriptions = Subscriptions(database, clock)
        self.streams = Streams(database, clock)
        self.leases = StreamLeases(database)
        self.files = FileChanges(database)
        self._database = database

    @staticmethod
    def create(warehouse: Path, clock: Clock, *, shared: bool = False) -> Catalog:
        """The warehouse's catalog, made if there is none. Creates the folder as well."""
        try:
            make_root(warehouse, shared=shared)
        except OSError as error:
            raise StorageUnavailable(
                f'folder "{warehouse}" cannot be made', detail=str(error)
            ) from error
        database = Database(warehouse.absolute() / FILE)
        database.create(clock.now_us())
        return Catalog(database, clock)

    @staticmethod
    def open(warehouse: Path, clock: Clock) -> Catalog:
        """The warehouse's catalog; StorageDamaged if there is none."""
        path = warehouse.absolute() / FILE
        if not path.is_file():
            raise StorageDamaged(f'there is no warehouse at "{warehouse}"', hint="steadyview run")
        database = Database(path)
        database.check_format()
        return Catalog(database, clock)

    @contextmanager
    def held(self) -> Iterator[None]:
        """We have the lease: nothing that we write comes after the writes of our successor."""
        self._database.take()
        try:
            with fenced(self.path.parent, self._database.check_fence):
                yield
        finally:
            self._database.let_go()

    def identity(self) -> str:
        """Eight hexadecimal digits that tell this warehouse from any other."""
        ((found,),) = self._database.read("SELECT identity FROM warehouse")
        return str(found)

    def close(self) -> None:
        """Give the file back. Safe to call twice."""
        self._database.close()

    def __enter__(self) -> Catalog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
