"""Databases as sources: one folder per family, one contract.

Belongs here: how a family's changes are captured and its questions answered.
Does not belong here: what is done with changes and answers; retries and scheduling (`runtime`).
Laws: an answer knows what it reflects (law 3); what cannot be kept exactly is refused by name (law
8); only `registry` knows the families, and they do not know each other.
"""

from steadyview.sources.contract import Monitor, Read, ReadTask, Snapshot, Source
from steadyview.sources.registry import open_source

__all__ = ["Monitor", "Read", "ReadTask", "Snapshot", "Source", "open_source"]
