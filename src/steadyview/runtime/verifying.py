"""Verifying one view at one cn: read it, recompute it from its SQL text, compare."""

from __future__ import annotations

import time
from collections.abc import Mapping

from steadyview.engine.failures import SparkError, reason, spark_told
from steadyview.engine.frames import Frames
from steadyview.engine.session import beside, ended
from steadyview.errors import SteadyviewError, StorageDamaged, StorageUnavailable
from steadyview.query.verify import Verdict, difference
from steadyview.runtime.moment import WaitFor, open_moment
from steadyview.runtime.parts import Parts
from steadyview.runtime.planning import Planned, all_sources
from steadyview.runtime.recompute import Recomputing
from steadyview.runtime.serving import At, resolve, row_of, rows_at
from steadyview.warehouse.states import check_readable

Plans = Mapping[str, Planned]
"""All plans, by name."""


def verify_view(
    parts: Parts, plan: Planned, plans: Plans, wait_for: WaitFor, at: At = None
) -> Verdict:
    """Sources read anew, compensated by the log to the view's cn (or to `at`)."""
    started = time.monotonic()
    row = row_of(parts.catalog, plan.name)
    check_readable(row, row.cn or 0)
    cn = row.cn if at is None else resolve(parts.catalog, at)
    assert cn is not None
    check_readable(row, cn)
    frames = Frames(beside(parts.spark))
    sources = [parts.sources[s] for s in sorted(all_sources(plan, plans))]
    with (
        spark_told(parts.root),
        parts.work_folder("verify") as folder,
        open_moment(sources, wait_for, parts.catalog) as moment,
    ):
        view = rows_at(parts, frames.spark, plan.name, cn)
        recomputing = Recomputing(parts, frames, plans, moment, cn, folder)
        found = difference(frames, view, recomputing.rows(plan))
    return Verdict(
        plan.name,
        cn,
        found.missing == 0 and found.extra == 0,
        found.missing,
        found.extra,
        recomputing.compensated,
        time.monotonic() - started,
        found.examples,
    )


def verify_or_tell(
    parts: Parts, plan: Planned, plans: Plans, wait_for: WaitFor, at: At = None
) -> Verdict:
    """The verdict; where the view or its sources cannot be read, one that says why.

    What concerns every view is raised: a damaged warehouse, a disk or Spark that does not answer.
    """
    started = time.monotonic()
    try:
        return verify_view(parts, plan, plans, wait_for, at)
    except (StorageDamaged, StorageUnavailable):
        raise
    except (SteadyviewError, *SparkError) as error:
        if ended(parts.spark):
            raise
        cn = parts.catalog.views.get(plan.name).cn if at is None else resolve(parts.catalog, at)
        took = time.monotonic() - started
        return Verdict(plan.name, cn or 0, False, 0, 0, 0, took, error=reason(error))
