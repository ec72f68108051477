"""Which of a view's states can be read, as the catalog and the view's own files know it."""

from __future__ import annotations

from dataclasses import replace

from steadyview.catalog import Catalog, Gap, ViewRow
from steadyview.errors import OutsideRetention
from steadyview.runtime.kept import algorithm_of, has_every_state, plan_of
from steadyview.runtime.planning import VERSIONS
from steadyview.views.mentions import mentions_source
from steadyview.warehouse.states import check_readable
from steadyview.warehouse.view_store import ViewStore


def check_kept(catalog: Catalog, store: ViewStore, row: ViewRow, cn: int) -> None:
    """OutsideRetention unless the view has a state at cn, and it is kept."""
    check_readable(row, cn)
    check_no_gap(catalog, row, cn)
    if not has_every_state(row):
        _check_installed(catalog, store, row, cn)


def gap_at(catalog: Catalog, row: ViewRow, cn: int, stands: int | None = None) -> Gap | None:
    """The gap in which a cn lies; where the view stands, it has a state.

    `stands`: up to where its changes are at hand, if that is further than what it shows.
    """
    stands = row.cn if stands is None else stands
    found = None if stands is None or cn >= stands else catalog.gaps.around(row.id, cn)
    return found and replace(found, high=min(found.high, stands or found.high))


def check_no_gap(
    catalog: Catalog, row: ViewRow, cn: int, stands: int | None = None
) -> None:
    """OutsideRetention for a cn between two states, with those that can be had instead."""
    gap = gap_at(catalog, row, cn, stands)
    if gap is None:
        return
    after = f"cn {gap.high}"
    known = f"cn {gap.low} and {after}" if gap.low >= row.oldest_cn else f"{after}, the oldest"
    what = "what came between two states was taken in one step"
    hint = "read one of these; views at level complete have a state at every cn"
    if gap.compressed:
        what = f"its {gap.commits} changes after cn {gap.low} up to {after} were compressed"
        hint = f"say one of these; steadyview history {row.name} shows where it has states"
    raise OutsideRetention(
        f'view "{row.name}" has no state at cn {cn}',
        detail=f"{what}; it has states at {known}",
        hint=hint,
    )


def _check_installed(catalog: Catalog, store: ViewStore, row: ViewRow, cn: int) -> None:
    """Such a view has the states that were installed, each until its sources change again."""
    ranges = (gap.high for gap in catalog.gaps.of([row.id]))
    known = {row.start_cn, row.cn, *store.changed_at(row), *ranges}
    last = max((c for c in known if c is not None and c <= cn), default=row.oldest_cn)
    if _changed(catalog, row, last, cn):
        kept = f"it is kept by {algorithm_of(row)}, which"
        who = kept if algorithm_of(row) != VERSIONS else "what it reads"
        raise OutsideRetention(
            f'view "{row.name}" has no state at cn {cn}',
            detail=f"{who} installed one at cn {last}",
            hint="views kept at level complete can be read at every cn",
        )


def _changed(catalog: Catalog, row: ViewRow, after: int, upto: int) -> bool:
    """Whether a source that the view reads, over others too, has committed anything in between."""
    committed = {run.source for run in catalog.commits.runs(after + 1, upto)}
    plan = plan_of(row)
    if plan is None:
        return any(mentions_source(row.sql, source) for source in committed)
    if any(name.source in committed for name in plan.used()):
        return True
    parents = [p for name in plan.nodes() if (p := catalog.views.find(name)) is not None]
    return any(_changed(catalog, parent, after, upto) for parent in parents)
