"""Durable facts of a warehouse: lease, sources, commit table, views, batches; one SQLite file.

Belongs here: what must survive a crash and is small. Does not belong here: rows (`update_log`,
`warehouse`), credentials (nowhere), decisions (`runtime`).
Laws: one order (law 4): `cn` is given here and nowhere else; exactly once (law 7): every write can
be repeated; what a reader of another process sees is always one committed state.
"""

from steadyview.catalog.batches import BatchRecord
from steadyview.catalog.builds import Build, StoredSpan
from steadyview.catalog.catalog import Catalog
from steadyview.catalog.clock import Clock, from_us, to_us
from steadyview.catalog.commits import MeantCommit
from steadyview.catalog.files import FileChange
from steadyview.catalog.gaps import Gap, Gaps
from steadyview.catalog.gates import BoundTime
from steadyview.catalog.holds import Hold
from steadyview.catalog.lease import Holder, Lease, holder
from steadyview.catalog.merging import merge_schema
from steadyview.catalog.refreshes import Deferred
from steadyview.catalog.runs import AdmittedRun
from steadyview.catalog.sources import SourceState
from steadyview.catalog.subscriptions import Subscription
from steadyview.catalog.views import Base, Published, ViewRow, ViewSpec

__all__ = [
    "Base",
    "BatchRecord",
    "BoundTime",
    "Build",
    "Catalog",
    "Clock",
    "Deferred",
    "FileChange",
    "Gap",
    "Gaps",
    "Hold",
    "Holder",
    "Lease",
    "MeantCommit",
    "Published",
    "AdmittedRun",
    "SourceState",
    "StoredSpan",
    "Subscription",
    "ViewRow",
    "ViewSpec",
    "from_us",
    "holder",
    "merge_schema",
    "to_us",
]
