"""Which views are served straight from the update log, as catalog and project say."""

from __future__ import annotations

from steadyview.catalog import ViewRow
from steadyview.runtime.kept import recalled
from steadyview.runtime.managers.record_view import RecordView, record_view
from steadyview.runtime.planning import Planned
from steadyview.runtime.project import ProjectConfig
from steadyview.runtime.served_rows import store_of
from steadyview.views.parse import IMMEDIATE
from steadyview.views.record_rows import NotByRecord

LOG_FAMILIES = ("sqlite", "postgresql")
"""Families of stores whose records managers keep straight from the update log."""


def log_view_of(row: ViewRow, project: ProjectConfig) -> RecordView | None:
    """The view as managers keep it, if it is to be served straight from the log and can be."""
    settings = project.stores.get(store_of(row) or "", {})
    family = settings.get("type")
    return _log_view(row) if family in LOG_FAMILIES else None


def _log_view(row: ViewRow) -> RecordView | None:
    try:
        return planned_log_view(recalled(row))
    except NotByRecord:
        return None


def planned_log_view(plan: Planned) -> RecordView | None:
    """The same of a plan; None if nobody asked for it, NotByRecord if it cannot be."""
    if plan.text is None or plan.text.serve is None or plan.text.serve_from != "log":
        return None
    if plan.text.policy != IMMEDIATE:
        raise NotByRecord(f"its policy is '{plan.text.policy}'")
    if plan.forced:
        raise NotByRecord("an algorithm is forced")
    return record_view(plan.name, plan.node, plan.columns, plan.serve_key, plan.relations)
