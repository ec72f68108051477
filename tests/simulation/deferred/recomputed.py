"""The three views from the jobs alone, in the order in which they committed. Shares nothing."""

from __future__ import annotations

from steadyview.simulation.deferred import DeferredTrace
from steadyview.simulation.deferred.worlds import NAMES


def recomputed(trace: DeferredTrace, view: str, target: int) -> dict:
    """The view's rows after all transactions that committed up to the target."""
    committed = [x for x in trace.history.transactions if x.commit_time <= target]
    jobs = {job.id: job for job in trace.world.jobs}
    done = [jobs[x.id] for x in sorted(committed, key=lambda x: x.commit_time)]
    statements = [statement for job in done for statement in job.statements]
    if view == "owners":
        return _owners(trace.world.jobs, statements)
    sign = 1 if view == "deposits" else -1
    found: dict = {}
    for s in statements:
        if s.name is None and s.amount * sign > 0:
            count, total = found.get((s.account.id,), (0, 0))
            found[s.account.id,] = (count + 1, total + s.amount)
    return found


def _owners(jobs, statements) -> dict:
    names = {s.account.id: NAMES[0] for job in jobs for s in job.statements}
    names |= {s.account.id: s.name for s in statements if s.name is not None}
    return dict.fromkeys(names.items(), (1,))
