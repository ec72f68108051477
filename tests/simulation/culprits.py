"""Algorithms with one fault each. The checker must convict every one of them within some seeds.

`left` is the level that they still reach, so the one above it is the level lost. `within`: how many
seeds, from 1 on, are enough to see that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from steadyview.algebra import Bag
from steadyview.checking import level_above
from steadyview.maintenance.admission import Admission
from steadyview.maintenance.algorithms import GLOBAL, LOCAL, SINGLE, Kind, kind_of
from steadyview.maintenance.bag_view_algebra import BagViewAlgebra
from steadyview.maintenance.c_strobe import CStrobe
from steadyview.maintenance.c_t_strobe import CTStrobe
from steadyview.maintenance.eca import Eca
from steadyview.maintenance.eca_key import EcaKey
from steadyview.maintenance.events import Install, Read
from steadyview.maintenance.g_strobe import GStrobe
from steadyview.maintenance.nested_sweep import NestedSweep
from steadyview.maintenance.recompute import Recompute
from steadyview.maintenance.strobe import Strobe
from steadyview.maintenance.sweep import Sweep, Walk
from steadyview.maintenance.t_strobe import TStrobe
from steadyview.plans.moves import FOREVER
from steadyview.simulation.batches import Batches, KeptView
from steadyview.simulation.view_plan import State

CULPRITS: list[Culprit] = []


@dataclass(frozen=True)
class Culprit:
    kind: Kind
    honest: str
    scenario: str
    left: str
    within: int

    @property
    def lost(self) -> str:
        return level_above(self.left)


def convict(honest: str, scenario: str, left: str, within: int, **options) -> Callable:
    """Put an algorithm on the list, in place of an honest one whose promise it claims to keep.

    The warehouse crashes only where that is the point.
    """
    crashes = options.pop("crashes", False)

    def listed(culprit):
        takes_view = issubclass(culprit, Strobe | EcaKey | Recompute | CStrobe | CTStrobe | Batches)

        def make(*arguments):
            return culprit(*arguments[: 3 if takes_view else 2], **options)

        claims = kind_of(honest)
        kind = replace(
            claims,
            name=culprit.__name__,
            make=make,
            keys=claims.keys or issubclass(culprit, EcaKey),
            survives=claims.survives if crashes else frozenset(),
        )
        CULPRITS.append(Culprit(kind, honest, scenario, left, within))
        return culprit

    return listed


# One source


@convict("eca", SINGLE, left="none", within=100)
class EcaKeyAsPrinted(EcaKey):
    """Claims strong consistency; a row deleted before its own answer comes back for ever."""


class _Hidden(dict):
    """Open queries that are there, but not to be compensated."""

    def values(self):
        return ()


@convict("eca", SINGLE, left="none", within=50)
class EcaWithoutCompensation(Eca):
    """Q_i = V<U_i>, whatever is unanswered."""

    def received(self, update):
        unanswered, self.UQS = self.UQS, _Hidden(self.UQS)
        try:
            return super().received(update)
        finally:
            self.UQS = unanswered | self.UQS


# The Strobe family


@convict("strobe", SINGLE, left="none", within=50)
class StrobeWithoutPending(Strobe):
    """Forgets deletions while queries are unanswered."""

    def deleted(self, change):
        actions = super().deleted(change)
        for query in self.UQS.values():
            query.pending.clear()
        return actions


@convict("strobe", SINGLE, left="convergent", within=100)
class StrobeApplyingEarly(Strobe):
    """Applies AL while queries are unanswered."""

    def applied(self):
        unanswered, self.UQS = self.UQS, {}
        try:
            return super().applied()
        finally:
            self.UQS = unanswered


@convict("strobe", SINGLE, left="none", within=50)
class StrobeIgnoringOvertakenAnswers(Strobe):
    """Throws an answer away that was overtaken by a deletion."""

    def answered(self, query, answer):
        if self.UQS[query].pending:
            answer = [answer[0]._replace(rows=Bag())]
        return super().answered(query, answer)


@convict("strobe", SINGLE, left="none", within=200)
class StrobeDeletingByHalfAKey(Strobe):
    """Takes rows for deleted that have the first column of a deleted key."""

    def __init__(self, positions, algebra, mv):
        halves = tuple(key[:1] for key in algebra.view.keys)
        super().__init__(positions, BagViewAlgebra(replace(algebra.view, keys=halves)), mv)


@convict("strobe", LOCAL, left="none", within=2000, crashes=True)
class StrobeCallingEveryStateWhole(Strobe):
    """Says of a state in the middle of a message that it reflects the message."""

    def applied(self):
        self._whole = True
        return super().applied()


@convict("g-strobe", GLOBAL, left="weak", within=200)
class GStrobeSplittingTransactions(GStrobe):
    """Handles every part of a global transaction when it arrives."""

    def received(self, update):
        return TStrobe.received(self, update)


class _Impatient(Admission):
    """Admits a transaction when its parts are there, whatever came before at its sources."""

    def _complete(self):
        held = self.held()
        for update in held:
            parts = [other for other in held if other.transaction == update.transaction]
            if len(parts) == update.parts:
                return parts
        return None

    def arrived(self, update):
        self._queues.setdefault(update.source, []).append(update)
        while (parts := self._complete()) is not None:
            for part in parts:
                self._queues[part.source].remove(part)
            yield parts


@convict("g-strobe", GLOBAL, left="none", within=400)
class GStrobeOvertaking(GStrobe):
    """The three printed conditions alone: a later transaction overtakes a part that is held."""

    def __init__(self, positions, algebra, mv):
        super().__init__(positions, algebra, mv)
        self._admission = _Impatient()


@convict("c-strobe", SINGLE, left="convergent", within=1000)
class CStrobeComparingKeys(CStrobe):
    """Takes two rows with one key for the same tuple."""

    def subtracted(self, delta, since):
        deleted = set()
        for change in self.L[since:]:
            keys = {(change.relation, row[0]) for row, _ in change.rows}
            if not change.inserted:
                deleted |= keys
            elif not keys & deleted:
                for position in self.positions.of(change.relation):
                    delta = self.algebra.row_delete(delta, position, change.rows)
        return delta


@convict("c-strobe", SINGLE, left="convergent", within=400)
class CStrobeBlindToDeletions(CStrobe):
    """Sends no compensating queries."""

    def compensated(self, terms, since):
        return []


@convict("c-strobe", SINGLE, left="convergent", within=50)
class CStrobeBlindToInsertions(CStrobe):
    """Does not subtract what later insertions brought into the answer."""

    def subtracted(self, delta, since):
        return delta


@convict("c-t-strobe:2", SINGLE, left="convergent", within=500, k=2)
class CTStrobeBlindToTheOpenUnit(CTStrobe):
    """Compensates only for changes of units that are closed."""

    def compensated(self, terms, since):
        changes, self.L = self.L, self.L[: self._begin]
        try:
            return super().compensated(terms, since)
        finally:
            self.L = changes


# SWEEP


@convict("sweep", SINGLE, left="none", within=50)
class SweepWithoutCompensation(Sweep):
    """Takes every answer as it is."""

    def _later(self, change, position, *, own):
        return []


@convict("sweep", LOCAL, left="none", within=50)
class SweepCompensatingForItself(Sweep):
    """Takes out updates from k on where only those after k are too much: <= for <."""

    def _later(self, change, position, *, own):
        return super()._later(change, position, own=True)


@convict("sweep", LOCAL, left="none", within=50)
class SweepWithBothSidesAlike(Sweep):
    """Sees k's own changes to the right of the start as well."""

    def _later(self, change, position, *, own):
        return super()._later(change, position, own=False)


@convict("sweep", SINGLE, left="none", within=50)
class SweepIgnoringOvertakenAnswers(Sweep):
    """Throws an answer away that shows a later update."""

    def answered(self, query, answer):
        change, walk = self._walks[query]
        position = self.positions.next(walk.bound, walk.within)
        if self._later(change, position, own=False):
            answer = [self.algebra.join(walk.known, position, Bag())]
        return super().answered(query, answer)


@convict("sweep-parallel", SINGLE, left="none", within=50, parallel=True)
class SweepMergingAsPrinted(Sweep):
    """Starts both directions from dR: the merge squares its counts."""

    def _branches(self, start, rows):
        known = self.algebra.seed(start, rows)
        alone = frozenset({start})
        return [Walk(start, known, alone, within) for within in self.positions.branches(start)]


@convict("sweep-pipelined", SINGLE, left="none", within=100, pipelined=True)
class SweepForgettingFinishedUpdates(Sweep):
    """Compensates only for updates whose own sweep is under way."""

    def _later(self, change, position, *, own):
        queue = self.UpdateMessageQueue
        self.UpdateMessageQueue = [c for c in queue if c is change or not self._finished(c)]
        try:
            return super()._later(change, position, own=own)
        finally:
            self.UpdateMessageQueue = queue


@convict("sweep-whole", GLOBAL, left="weak", within=50)
class SweepSplittingTransactions(Sweep):
    """Sweeps every part of a global transaction when it arrives."""


@convict("sweep-whole", GLOBAL, left="none", within=50, whole=True)
class SweepBlindToHeldParts(Sweep):
    """Does not compensate for what was received and is not admitted."""

    def _later(self, change, position, *, own):
        admission, self._admission = self._admission, None
        try:
            return super()._later(change, position, own=own)
        finally:
            self._admission = admission


@convict("sweep", SINGLE, left="none", within=100, crashes=True)
class SweepForgettingAfterARestart(Sweep):
    """Says of every state that it reflects all that was received."""

    def _installed(self):
        last = self.UpdateMessageQueue[-1].number if self.UpdateMessageQueue else 0
        return [
            Install(a.change, max(a.upto, last)) if isinstance(a, Install) else a
            for a in super()._installed()
        ]


@convict("sweep", SINGLE, left="none", within=100, crashes=True)
class SweepRepeatingAfterARestart(Sweep):
    """Says of every state that it lacks the last update."""

    def _installed(self):
        return [
            Install(a.change, a.upto - 1) if isinstance(a, Install) else a
            for a in super()._installed()
        ]


@convict("nested-sweep", SINGLE, left="none", within=50)
class NestedSweepAbsorbingOne(NestedSweep):
    """As printed: of several queued updates of a source, sees only the first."""

    def _queued(self, position):
        return self._merged([rows for _, _, rows in self._first(position)])

    def _absorbed_of(self, position):
        first = self._first(position)
        self.UpdateMessageQueue = [e for e in self.UpdateMessageQueue if e not in first]
        self._absorb(*(number for number, _, _ in first))
        return self._merged([rows for _, _, rows in first])

    def _first(self, position):
        return [e for e in self.UpdateMessageQueue if e[1] == position][:1]


@convict("nested-sweep:2", SINGLE, left="none", within=1000, most=2, crashes=True)
class NestedSweepJustStopping(NestedSweep):
    """Forced to end, absorbs nothing more: its states are no prefixes, and a crash loses rows."""

    def _may(self, number):
        return self._horizon is None


# Others


@convict("recompute", SINGLE, left="none", within=100)
class RecomputeOnce(Recompute):
    """Does not look again when something changed while it was reading."""

    def received(self, update):
        actions = super().received(update)
        self._dirty = False
        return actions


# Plans over versions


@convict("batched-sweep", SINGLE, left="none", within=50)
class BatchesThawed(Batches):
    """Looks things up in the state of now instead of the frozen one."""

    def _asked(self, wanted):
        lookup = super()._asked(wanted)
        return Read(lookup.query, lookup.source, (self._plan.reads.index(wanted.relation),))


@convict("batched-sweep", SINGLE, left="strong", within=50)
class BatchesInOneState(Batches):
    """Installs a batch as a whole."""

    def _recorded(self, window) -> Sequence:
        actions = super()._recorded(window)
        installs = [a for a in actions if isinstance(a, Install)]
        rest = [a for a in actions if not isinstance(a, Install)]
        if not installs:
            return rest
        change = sum((i.change for i in installs[1:]), installs[0].change)
        return [Install(change, installs[-1].upto), *rest]


@convict("batched-sweep", GLOBAL, left="none", within=50)
class BatchesBlindToHeldParts(Batches):
    """Leaves out of the log what was received and is not admitted."""

    def _log_rows(self):
        rows = super()._log_rows()
        return {name: [r for r in log if r.cn != FOREVER] for name, log in rows.items()}


@convict("batched-sweep", SINGLE, left="none", within=50)
class BatchesTrustingTheOrder(Batches):
    """Takes a frozen state to show everything that its source told before."""

    def _reflects(self, update):
        return update.number <= self._frozen_at[update.source]


@convict("batched-sweep", SINGLE, left="none", within=50)
class BatchesUpToTheFirstGap(Batches):
    """Takes a frozen state that lacks a transaction to lack all that came after it."""

    def _reflects(self, update):
        hidden = [u.number for u in self._log if not super(type(self), self)._reflects(u)]
        return update.number < min(hidden, default=update.number + 1)


@convict("batched-sweep", SINGLE, left="none", within=100)
class BatchesForgettingTheUnsettled(Batches):
    """Forgets what was admitted with the end of its batch, whether or not a state has shown it."""

    def _settled(self, update):
        return update.number in self._cns


@convict("batched-sweep", LOCAL, left="none", within=400, crashes=True)
class BatchesForgettingTheUnsettledInACrash(Batches):
    """Keeps what no state has shown in memory alone."""

    def __init__(self, plan, relations, kept):
        super().__init__(plan, relations, replace(kept, unsettled=()))


@convict("batched-sweep", SINGLE, left="none", within=100)
class BatchesBeginningGroupsAnew(Batches):
    """Finds no state of the groups that it touches."""

    def _recorded(self, window):
        self.kept = replace(self.kept, state={})
        return super()._recorded(window)


@dataclass(frozen=True)
class _Behind(KeptView):
    """Groups' sums, and those of the batch before."""

    before: State = field(default_factory=dict)


@convict("batched-sweep", LOCAL, left="none", within=200, crashes=True)
class BatchesLosingTheLastSums(Batches):
    """After a crash, has the groups' sums of the batch before."""

    def __init__(self, plan, relations, kept):
        durable = kept.before if isinstance(kept, _Behind) else kept.state
        super().__init__(plan, relations, replace(kept, state=durable))

    def _recorded(self, window):
        before = self.kept.state
        actions = super()._recorded(window)
        kept = self.kept
        self.kept = _Behind(kept.upto, kept.state, kept.unsettled, before)
        return actions
