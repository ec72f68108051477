"""Verifying one view at one cn: read it, recompute it from its SQL text, compare.

A hidden node has no text; it is recomputed by the plain SQL that its plan stands for, and so is
the state of a view or node.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame

from steadyview.engine.failures import SparkError, reason, spark_told
from steadyview.engine.frames import Frames
from steadyview.engine.session import beside, ended
from steadyview.errors import (
    OutsideRetention,
    SteadyviewError,
    StorageDamaged,
    StorageUnavailable,
)
from steadyview.query.moment import WaitFor, open_moment
from steadyview.query.verify import Verification, difference
from steadyview.runtime.explain import hidden_below
from steadyview.runtime.kept import all_recalled
from steadyview.runtime.parts import Parts
from steadyview.runtime.planning import Planned, all_sources
from steadyview.runtime.recompute import Recomputing
from steadyview.runtime.serving import At, resolve, row_of, rows_at
from steadyview.runtime.state_kept import check_no_gap, gap_at
from steadyview.warehouse.apply import state_at
from steadyview.warehouse.states import check_readable
from steadyview.warehouse.view_store import ViewStore

Plans = Mapping[str, Planned]
"""All plans, by name."""


def verify_view(
    parts: Parts,
    plan: Planned,
    plans: Plans,
    wait_for: WaitFor,
    at: At = None,
    part: str = "rows",
) -> Verification:
    """Sources read anew, compensated by the log to the view's cn (or to `at`); also a hidden node.

    `part`: its rows, or the state that it keeps beside them.
    """
    started = time.monotonic()
    row = row_of(parts.catalog, plan.name)
    check_readable(row, row.cn or 0)
    cn = row.cn if at is None else resolve(parts.catalog, at)
    assert cn is not None
    check_readable(row, cn)
    check_no_gap(parts.catalog, row, cn)
    frames = Frames(beside(parts.spark))
    sources = [parts.sources[s] for s in sorted(all_sources(plan, plans))]
    with (
        spark_told(parts.root),
        parts.work_folder("verify") as folder,
        open_moment(sources, wait_for, parts.catalog) as moment,
    ):
        recomputing = Recomputing(parts, frames, plans, moment, cn, folder)
        if part == "state":
            kept = _state(frames, ViewStore(parts.root, row, plan.shape), cn)
            again = recomputing.node_state(plan)
        else:
            kept = rows_at(parts, frames.spark, plan.name, cn)
            again = recomputing.node_rows(plan) if plan.hidden else recomputing.rows(plan)
        found = difference(frames, kept, again)
    return Verification(
        plan.name,
        cn,
        found.missing == 0 and found.extra == 0,
        found.missing,
        found.extra,
        recomputing.compensated,
        time.monotonic() - started,
        found.examples,
        part=part,
    )


def keeps_state(parts: Parts, plan: Planned, at: At = None) -> bool:
    """Whether the node's state at a cn can be compared: it keeps one, and has not rolled it on."""
    row = row_of(parts.catalog, plan.name)
    cn = row.cn if at is None else resolve(parts.catalog, at)
    store = ViewStore(parts.root, row, plan.shape)
    if not store.shape.state or cn is None or store.state_cn() > cn:
        return False
    return gap_at(parts.catalog, row, cn) is None


def _state(frames: Frames, store: ViewStore, cn: int) -> DataFrame:
    """The state as stored; who keeps the views may roll it on meanwhile."""
    before = store.state_cn()
    found = state_at(frames, store, cn)
    if before > cn or store.state_cn() != before:
        fact = f'the state of "{store.name}" at cn {cn} is not kept any more'
        raise OutsideRetention(fact, hint="ask again, at the newest commit")
    return found


def verify_or_tell(
    parts: Parts,
    plan: Planned,
    plans: Plans,
    wait_for: WaitFor,
    at: At = None,
    part: str = "rows",
) -> Verification:
    """The verdict; where the view or its sources cannot be read, one that says why.

    What concerns every view is raised: a damaged warehouse, a disk or Spark that does not answer.
    """
    started = time.monotonic()
    try:
        return verify_view(parts, plan, plans, wait_for, at, part)
    except (StorageDamaged, StorageUnavailable):
        raise
    except (SteadyviewError, *SparkError) as error:
        if ended(parts.spark):
            raise
        row = parts.catalog.views.get(plan.name)
        cn = row.cn if at is None else resolve(parts.catalog, at)
        took = time.monotonic() - started
        told = Verification(
            plan.name, cn or 0, False, 0, 0, 0, took, error=reason(error), part=part
        )
        outside = isinstance(error, OutsideRetention)
        return replace(told, no_state=outside and bool(gap_at(parts.catalog, row, told.cn)))


class Verifying:
    """Verifies several views of one warehouse, at one moment in the past or each at its newest."""

    def __init__(self, parts: Parts, wait_for: WaitFor, at: At = None) -> None:
        self._parts, self._wait_for, self._at = parts, wait_for, at
        self._plans = all_recalled(parts.catalog.views.all())

    def all(self, names: Sequence[str], *, named: bool, nodes: bool) -> list[Verification]:
        """The verdicts. One that cannot be compared is told by its own, unless it was `named`.

        `nodes`: also of the hidden nodes below, and of what views and nodes keep as their state.
        """
        parts, plans = self._parts, self._plans
        rows = [(name, verify_view if named else verify_or_tell) for name in names]
        below = {h.name for n in names for h in hidden_below(plans[n], plans)} if nodes else set()
        rows += [(name, verify_or_tell) for name in sorted(below)]
        found = [check(parts, plans[n], plans, self._wait_for, self._at) for n, check in rows]
        stated = [n for n, _ in rows if keeps_state(parts, plans[n], self._at)] if nodes else []
        return found + [
            verify_or_tell(parts, plans[n], plans, self._wait_for, self._at, "state")
            for n in stated
        ]
