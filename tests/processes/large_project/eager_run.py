"""`steadyview`, for which that is many and long ago what usually is few and just now.

    python -m tests.processes.large_project.eager_run run --project FOLDER

So a life of some seconds passes every crash point: first states are read in spans, bases and states
are rolled after some batches, and old files are merged. With PYSPARK_GATEWAY_PORT in the
environment it uses the Spark that runs there.
"""

from __future__ import annotations

from steadyview.cli import main
from steadyview.delta import compaction
from steadyview.runtime import building, housekeeping
from steadyview.warehouse import apply
from tests.crash.keeper import attached

building.SPAN = 30
apply.RESIDUAL_FILES = 2
compaction.MANY_FILES = 3
housekeeping.EVERY = 10.0

if __name__ == "__main__":
    attached()
    main()
