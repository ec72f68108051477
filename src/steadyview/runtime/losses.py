"""What is lost: changes that cannot be proved to be known, and the views that this concerns.

A loss is found in the stream (the catalog keeps it with its seq), by a look at what the source's
own catalog says (`examine`), by reading (`ColumnLost`) or by an audit. It stops every view that
rests on what was lost, in the transaction in which the new evidence becomes the one to compare
with. A state that is still being built is spoilt by every loss told since before its sources were
frozen, whoever found it:

    a first state is published  =>  nothing that it reads was lost since `mark`

A defect is less: a table that cannot be captured or read as it is now. Its views wait until it is
put right (if nothing of it was lost meanwhile); the other tables of its source go on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from steadyview.catalog import ViewRow
from steadyview.changes import Loss, RelationName
from steadyview.errors import ColumnLost, SteadyviewError, about
from steadyview.runtime.moment import Moment, admitted_since, settled_upto
from steadyview.runtime.parts import Parts
from steadyview.runtime.planning import Planned
from steadyview.runtime.schemas import set_up

RETRY = 10.0
"""Seconds between two looks whether a defect was put right."""

Defects = Mapping[RelationName, SteadyviewError]


@dataclass(frozen=True)
class Mark:
    """What was known to be lost at some time: so many found beside, and the stream's last ones."""

    found: int
    told: frozenset[Loss]


class Losses:
    """The losses and defects of one warehouse's relations; the caller holds the lease."""

    def __init__(self, parts: Parts, plans: Mapping[str, Planned], defects: Defects) -> None:
        self._parts = parts
        self._views = parts.catalog.views
        self._plans = plans
        self._losing = threading.Lock()
        self._found: list[Loss] = []
        self._gone: dict[str, frozenset[Loss]] = {}
        """Per source, losses of relations that are not there: every look tells them again."""
        self._defects: dict[RelationName, SteadyviewError] = dict(defects)
        self._retried: dict[str, float] = {}
        self._said: set[str] = set()
        """What was told to views of defects: ours to take back."""

    # --- first states ------------------------------------------------------------------------

    def mark(self) -> Mark:
        """Take it before the sources are frozen."""
        return Mark(len(self._found), frozenset(self._parts.catalog.sources.losses()))

    def spoilt(self, plan: Planned, mark: Mark, moment: Moment) -> bool:
        """Whether no first state of the view may rest on this moment, frozen after the mark.

        When what the stream tells was lost happened is not known, but for single values: these were
        lost in their transaction, which the moment shows or does not.
        """
        news = frozenset(self._parts.catalog.sources.losses()) - mark.told
        return (
            any(plan.loses(x.relation, x.column) for x in news if not x.mendable)
            or self._found_since(plan, mark)
            or self._unseen(plan, moment)
        )

    def publish_unless_lost(self, plan: Planned, mark: Mark, publish: Callable[[], None]) -> bool:
        """Publish a first state, unless a loss since the mark would have stopped the view."""
        with self._losing:
            if self._found_since(plan, mark):
                return False
            publish()
            return True

    def _found_since(self, plan: Planned, mark: Mark) -> bool:
        return any(plan.loses(x.relation, x.column) for x in self._found[mark.found :])

    def _unseen(self, plan: Planned, moment: Moment) -> bool:
        """Whether a column it uses was lost in a transaction that the moment does not show.

        The log's rows of that transaction lack values, so no first state rests on them: it is built
        under a later moment, whose sources show the transaction themselves.
        """
        catalog, log = self._parts.catalog, self._parts.log
        for lost in catalog.sources.losses():
            source = lost.relation.source
            if plan.loses(lost.relation, lost.column):
                known = admitted_since(source, moment, moment.upto, catalog, log)
                if lost.seq > settled_upto(known):
                    return True
        return False

    # --- finding -----------------------------------------------------------------------------

    def examine(self, sources: Iterable[str]) -> bool:
        """Stop the views whose relations are not proved to be whole now; whether any was lost.

        What the source's own catalog says now is then what the next look compares with: a view that
        is built anew rests on states after the loss. What capture lacks since is set up again.
        """
        found = False
        for name in sources:
            if self._retry(name):
                self._set_up(name)
            catalog = self._parts.catalog
            relations, state = catalog.sources.schemas(name), catalog.sources.state(name)
            with about(name):
                seen = self._parts.sources[name].examine(relations, state.proof)
            losses = [x for x in seen.losses if x not in self._gone.get(name, ())]
            self._gone[name] = frozenset(x for x in seen.losses if x.relation not in seen.evidence)
            known = {r.name: r.evidence for r in relations}
            news = {r: e for r, e in seen.evidence.items() if known.get(r) != e}
            if news or losses:
                self.lose(losses, news)
            if losses:
                found = True
                self._set_up(name)
        return found

    def lose(
        self, losses: Sequence[Loss], evidence: Mapping[RelationName, str] | None = None
    ) -> None:
        """Stop the views that losses concern, for good; `evidence` is what the sources say now."""
        with self._losing:
            self._found += losses
            self._views.lose(self._concerned(losses), evidence or {}, losses)

    def _concerned(self, losses: Sequence[Loss]) -> dict[str, str]:
        """The running views that a loss concerns, each with the reason; they can be rebuilt."""
        stopped: dict[str, str] = {}
        running = [row for row in self._running() if row.cn is not None]
        for lost in losses:
            for row in running:
                if self._plans[row.name].loses(lost.relation, lost.column):
                    hint = f"hint: run: steadyview view rebuild {row.name}"
                    stopped.setdefault(row.name, f"{lost.reason}\n{hint}")
        return stopped

    def stop_lost(self, plans: Sequence[Planned]) -> None:
        """Stop the views that a loss in the stream after their state concerns."""
        rows = {row.name: row for row in self._running()}
        for lost in self._parts.catalog.sources.losses():
            cn = self._parts.catalog.commits.cn_of(lost.relation.source, lost.seq)
            for plan in plans:
                reached = rows[plan.name].cn if plan.name in rows else None
                if cn is None or reached is None or cn <= reached:
                    continue
                if plan.loses(lost.relation, lost.column):
                    self._views.stop(plan.name, lost.reason, cn, mendable=lost.mendable)

    def stop_users(
        self, plans: Sequence[Planned], lost: ColumnLost, rows: Mapping[str, ViewRow]
    ) -> None:
        """Stop the views that use what was just found lost; raises it if none does."""
        users = [p for p in plans if p.name in rows and _uses(p, lost)]
        if not users:
            raise lost
        for plan in users:
            row = rows[plan.name]
            if row.replacement:
                self._views.give_up(row.id)
            else:
                cn = None if row.cn is None else row.cn + 1
                self._views.stop(plan.name, str(lost), cn, mendable=True)

    # --- defects -----------------------------------------------------------------------------

    def waits(self, plan: Planned) -> bool:
        """Whether the view reads a table that cannot be captured or read as it is now."""
        return any(r.name in self._defects for r in plan.relations)

    def defects(self) -> Defects:
        """What is wrong with single tables."""
        return dict(self._defects)

    def tell_defects(self) -> None:
        """Write down which views wait for which table; what they waited for may be over."""
        for row in self._running():
            plan = self._plans[row.name]
            wrong = [self._defects[r.name] for r in plan.relations if r.name in self._defects]
            if wrong and row.error != str(wrong[0]):
                self._views.tell(row.name, str(wrong[0]))
            elif not wrong and row.error in self._said:
                self._views.tell(row.name, None)
            self._said.update(map(str, wrong))

    def _retry(self, source: str) -> bool:
        """Whether to look again if a defect was put right."""
        if not any(relation.source == source for relation in self._defects):
            return False
        return time.monotonic() >= self._retried.get(source, 0.0) + RETRY

    def _set_up(self, name: str) -> None:
        """Have what capture lacks set up again, table by table where one cannot be."""
        self._retried[name] = time.monotonic()
        relations = self._parts.catalog.sources.schemas(name)
        with about(name):
            found = set_up(self._parts.sources[name], relations)
        others = {r: e for r, e in self._defects.items() if r.source != name}
        self._defects = {**others, **found}
        self.tell_defects()

    def _running(self) -> list[ViewRow]:
        return [
            row
            for row in self._views.all()
            if row.state in ("building", "active") and row.name in self._plans
        ]


def _uses(plan: Planned, lost: ColumnLost) -> bool:
    """Whether the view is concerned: errors name a relation by its display name."""
    return any(
        str(r.name) == lost.relation and plan.loses(r.name, lost.column) for r in plan.relations
    )
