"""`status`: where every source and every view stands, put together from catalog and keeping."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from steadyview.catalog import Catalog, SourceState, ViewRow, holder
from steadyview.errors import SteadyviewError
from steadyview.plans.plan import HIDDEN
from steadyview.runtime.project import ProjectConfig
from steadyview.runtime.status import (
    ReaderStatus,
    SourceStatus,
    Status,
    ViewStatus,
    build_progress,
    refresh_status,
    source_status,
    table_status,
    time_of,
    unaudited,
    view_status,
)

if TYPE_CHECKING:
    from steadyview.runtime.keeping import Keeping


class Glance:
    """One look at a warehouse. `keeping`: this process's own work on it, if it does any.

    `error`: what keeps this process from working, as far as it may pass.
    """

    def __init__(
        self,
        project: ProjectConfig,
        catalog: Catalog,
        now: int,
        keeping: Keeping | None,
        error: SteadyviewError | None,
    ) -> None:
        self._project, self._catalog, self._now = project, catalog, now
        troubles = keeping.stores.troubles() if keeping else []
        self._keeping, self._error = keeping, error or next((t.error for t in troubles), None)
        self._last = catalog.commits.last_cn()
        self._held = holder(project.warehouse)

    def status(self) -> Status:
        """What it shows."""
        return Status(
            self._project.name,
            self._last,
            time_of(self._catalog, self._last),
            asdict(self._held) if self._held else None,
            self._sources(),
            self._views(),
            None if self._error is None else str(self._error),
        )

    def _sources(self) -> list[SourceStatus]:
        errors = self._keeping.errors() if self._keeping else {}
        return [self._source(s, errors.get(s.name)) for s in self._catalog.sources.states()]

    def _source(self, state: SourceState, error: SteadyviewError | None) -> SourceStatus:
        audited = self._project.sources.get(state.name, {}).get("audit", "off") != "off"
        return source_status(
            state,
            self._keeping.lag(state.name) if self._keeping else None,
            self._orphan(state.name) if error is None else str(error),
            self._now,
            held=self._held is not None,
            not_audited=unaudited(self._catalog, state.name) if audited else (),
        )

    def _orphan(self, source: str) -> str | None:
        """What is wrong with a source that the project file does not name."""
        if source in self._project.sources:
            return None
        fact = f'source "{source}" is no longer in steadyview.toml, and keeps changes for us'
        return f"{fact}\nhint: run: steadyview source remove {source}"

    def _views(self) -> list[ViewStatus]:
        rows = [r for r in self._catalog.views.all() if not r.name.startswith(HIDDEN)]
        rates = self._keeping.rates() if self._keeping else {}
        unwritten = self._keeping.tables.errors() if self._keeping else {}
        building = build_progress(self._catalog)
        known = self._catalog.refreshes.all()

        def shown(row: ViewRow) -> ViewStatus:
            rate, progress = rates.get(row.name), building.get(row.name)
            found = view_status(self._catalog, row, self._last, self._now, rate, progress)
            error = unwritten.get(row.name)
            refresh = refresh_status(row, known.get(row.id), self._now, self._project.timezone)
            table = table_status(self._project.warehouse, row.name, error)
            readers = [
                ReaderStatus(s.name, s.position, max((row.cn or 0) - s.position, 0))
                for s in self._catalog.subscriptions.all()
                if s.of == row.name
            ]
            return replace(found, table=table, refresh=refresh, readers=readers)

        return [shown(row) for row in rows]
