"""View managers over random worlds: every update program, kind of test-and-set and fault.

Belongs here: base records with time-lines and a log of streams, a store with atomic operations on
records, a scheduler that runs one request of one manager at a time, faults (a manager dies before
or after its request was done, a request comes late, two copies live), and queues with service times
for the figures. Histories are judged by `checking/records`.
Law: the same way, fault and seed give the same history everywhere.
"""

from steadyview.simulation.records.faults import FAULTS, RunFaults
from steadyview.simulation.records.measuring import Levels, measured_levels
from steadyview.simulation.records.running import RecordTrace, recorded
from steadyview.simulation.records.ways import COLUMNS, RECORD_WAYS, RecordWay, ways_of

__all__ = [
    "COLUMNS",
    "FAULTS",
    "RECORD_WAYS",
    "RunFaults",
    "Levels",
    "RecordTrace",
    "RecordWay",
    "measured_levels",
    "recorded",
    "ways_of",
]
