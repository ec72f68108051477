"""Views that single values have stopped are built anew now and then: the values may be mended."""

from __future__ import annotations

import time
from dataclasses import dataclass

from steadyview.catalog import ViewRow
from steadyview.runtime.parts import Parts
from steadyview.runtime.reconciling import Reconciling

_FIRST, _LONGEST = 10.0, 600.0
"""Seconds until a view that values have stopped is built anew for the first time, and at most."""


@dataclass
class _Attempt:
    """When a stopped view was last built anew in vain, and when that is due again."""

    cn: int | None
    due: float
    wait: float = _FIRST

    def again(self, cn: int, now: float) -> None:
        self.wait = min(self.wait * 2, _LONGEST)
        self.cn, self.due = cn, now + self.wait


class Mending:
    """Begins to build stopped views anew; used by the thread of the loop alone."""

    def __init__(self, parts: Parts, project: Reconciling) -> None:
        self._commits, self._views = parts.catalog.commits, parts.catalog.views
        self._project = project
        self._attempts: dict[str, _Attempt] = {}

    def forget(self, name: str) -> None:
        """The view is built anew by somebody's wish: no attempt was in vain."""
        self._attempts.pop(name, None)

    def begin(self) -> None:
        """Begin to build anew the views that single values have stopped, if there is news.

        The same for views that could not be built beside what they show. Seldom, if it was in vain
        before: the values may never be mended.
        """
        now, last = time.monotonic(), self._commits.last_cn()
        beside = {row.name for row in self._views.replacements()}
        due = set()
        for row in self._views.all():
            if not self._mendable(row) or row.name in beside:
                continue
            attempt = self._attempts.setdefault(row.name, _Attempt(row.cn, now + _FIRST))
            if row.name in self._project.files and last != attempt.cn and now >= attempt.due:
                attempt.again(last, now)
                due.add(row.name)
        if due:
            self._project.place(due)

    def _mendable(self, row: ViewRow) -> bool:
        if row.state == "stopped":
            return bool(row.mendable) and row.cn is not None
        return row.name in self._project.failed
