"""The update log: every captured row image, durable and in order, one Delta table per relation.

Belongs here: writing captured chunks as flushes, finding the files of a range of transactions,
cleaning up after a crash, compaction, retention. Does not belong here: `cn` (the catalog gives it).
Law: **a flush exists when the catalog says so**; files of flushes it does not know are litter that
`recover` removes before anything is written again.
"""

from steadyview.update_log.log import UpdateLog
from steadyview.update_log.writing import FlushWriter

__all__ = ["FlushWriter", "UpdateLog"]
