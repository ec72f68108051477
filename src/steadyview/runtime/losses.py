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

from steadyview.changes import Loss, RelationName, RelationSchema
from steadyview.errors import ColumnLost, SteadyviewError, about
from steadyview.query.moment import Moment, admitted_since, settled_upto
from steadyview.runtime.kept import Kept
from steadyview.runtime.parts import Parts
from steadyview.runtime.planning import Planned
from steadyview.runtime.schemas import set_up
from steadyview.sources.contract import Examined

RETRY = 10.0
"""Seconds between two looks whether a defect was put right."""

Defects = Mapping[RelationName, SteadyviewError]


@dataclass(frozen=True)
class LossMark:
    """What was known to be lost at some time: so many found beside, and the stream's last ones."""

    found: int
    told: frozenset[Loss]


class Losses:
    """The losses and defects of one warehouse's relations; the caller holds the lease.

    The thread of batches and the one of first states both look and publish. `_losing`: no loss is
    found while a first state is published, and none is published while views are stopped.
    `_comparing`: what is known of losses and defects is compared and changed by one at a time; it
    is taken first. Sources are asked outside of both.
    """

    def __init__(
        self, parts: Parts, running: Callable[[], Sequence[Kept]], defects: Defects
    ) -> None:
        self._parts = parts
        self._views = parts.catalog.views
        self._running = running
        self.given_up = False
        """Whether something that was built beside was lost: it is to be begun again."""
        self._losing = threading.Lock()
        self._comparing = threading.RLock()
        self._found: list[Loss] = []
        self._gone: dict[str, frozenset[Loss]] = {}
        """Per source, losses of relations that are not there: every look tells them again."""
        self._defects: dict[RelationName, SteadyviewError] = dict(defects)
        self._retried: dict[str, float] = {}
        self._said: set[str] = set()
        """What was told to views of defects: ours to take back."""

    # --- first states ------------------------------------------------------------------------

    def mark(self) -> LossMark:
        """Take it before the sources are frozen."""
        return LossMark(len(self._found), frozenset(self._parts.catalog.sources.losses()))

    def spoilt(self, plan: Planned, mark: LossMark, moment: Moment) -> bool:
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

    def publish_unless_lost(
        self, plan: Planned, mark: LossMark, publish: Callable[[], None]
    ) -> bool:
        """Publish a first state, unless a loss since the mark would have stopped the view."""
        with self._losing:
            if self._found_since(plan, mark):
                return False
            publish()
            return True

    def _found_since(self, plan: Planned, mark: LossMark) -> bool:
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
            losses = self._news(name, relations, seen)
            if losses:
                found = True
                self._set_up(name)
        return found

    def _news(
        self, name: str, relations: Sequence[RelationSchema], seen: Examined
    ) -> list[Loss]:
        """What of a look at a source was not known; the views that it concerns are stopped."""
        with self._comparing:
            losses = [x for x in seen.losses if x not in self._gone.get(name, ())]
            self._gone[name] = frozenset(x for x in seen.losses if x.relation not in seen.evidence)
            known = {r.name: r.evidence for r in relations}
            news = {r: e for r, e in seen.evidence.items() if known.get(r) != e}
            if news or losses:
                self.lose(losses, news)
        return losses

    def lose(
        self, losses: Sequence[Loss], evidence: Mapping[RelationName, str] | None = None
    ) -> None:
        """Stop the views that losses concern, for good; `evidence` is what the sources say now."""
        with self._losing:
            self._found += losses
            concerned = self._concerned(losses)
            stopped = {k.name: text for k, text in concerned if not k.row.replacement}
            beside = [k.id for k, _ in concerned if k.row.replacement]
            self._views.lose(stopped, evidence or {}, losses, beside)
            self.given_up = self.given_up or bool(beside)

    def _concerned(self, losses: Sequence[Loss]) -> list[tuple[Kept, str]]:
        """The running views that a loss concerns, each with the reason; they can be rebuilt."""
        found = []
        for kept in self._running():
            lost = [x for x in losses if kept.plan.loses(x.relation, x.column)]
            if lost and kept.row.cn is not None:
                hint = f"hint: run: steadyview view rebuild {kept.name}"
                found.append((kept, f"{lost[0].reason}\n{hint}"))
        return found

    def stop_lost(self, views: Sequence[Kept]) -> None:
        """Stop the views that a loss in the stream after their state concerns.

        What is built beside is given up: it is built again.
        """
        rows = {kept.id: kept.row for kept in self._running()}
        for lost in self._parts.catalog.sources.losses():
            cn = self._parts.catalog.commits.cn_of(lost.relation.source, lost.seq)
            for kept in views:
                reached = rows[kept.id].cn if kept.id in rows else None
                if cn is None or reached is None or cn <= reached:
                    continue
                if not kept.plan.loses(lost.relation, lost.column):
                    continue
                if kept.row.replacement:
                    self._views.give_up([kept.id])
                    self.given_up = True
                else:
                    self._views.stop(kept.name, lost.reason, cn, mendable=lost.mendable)

    def stop_users(
        self, views: Sequence[Kept], lost: ColumnLost, fail: Callable[[Kept, str], None]
    ) -> None:
        """Stop the views that use what was just found lost; raises it if none does.

        `fail`: what to do with one that is built beside.
        """
        running = {kept.id: kept for kept in self._running()}
        users = [running[k.id] for k in views if k.id in running and _uses(k.plan, lost)]
        if not users:
            raise lost
        for kept in users:
            if kept.row.replacement:
                fail(kept, str(lost))
            else:
                cn = None if kept.row.cn is None else kept.row.cn + 1
                self._views.stop(kept.name, str(lost), cn, mendable=True)

    # --- defects -----------------------------------------------------------------------------

    def waits(self, plan: Planned) -> bool:
        """Whether the view reads a table that cannot be captured or read as it is now."""
        return any(r.name in self._defects for r in plan.relations)

    def defects(self) -> Defects:
        """What is wrong with single tables."""
        return dict(self._defects)

    def tell_defects(self) -> None:
        """Write down which views wait for which table; what they waited for may be over."""
        for kept in self._running():
            row = kept.row
            if row.replacement:
                continue
            read = kept.plan.relations
            wrong = [self._defects[r.name] for r in read if r.name in self._defects]
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
        with self._comparing:
            others = {r: e for r, e in self._defects.items() if r.source != name}
            self._defects = {**others, **found}
            self.tell_defects()


def _uses(plan: Planned, lost: ColumnLost) -> bool:
    """Whether the view is concerned: errors name a relation by its display name."""
    return any(
        str(r.name) == lost.relation and plan.loses(r.name, lost.column) for r in plan.relations
    )
