"""Sweeps with one term taken out. Every one of them must be convicted by some test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from steadyview.algebra import Versions
from steadyview.maintenance import BatchedSweep
from steadyview.maintenance.bag_algebra import (
    Answer,
    BagAlgebra,
    Handle,
    Keys,
    LogRow,
    Partial,
    Partner,
)
from steadyview.views.definition import Occurrence
from steadyview.views.interpret import interpret
from steadyview.views.join_tree import Edge
from tests.maintenance.sweeping import Sweeper


class _LogMutant(BagAlgebra):
    """Sees only some log rows, or sees them otherwise, when it completes answers."""

    def partner(self, occurrence: Occurrence, answer: Handle) -> Partner:
        honest, name = self._log, occurrence.relation.name
        rows = [seen for row in self.log(occurrence) if (seen := self.seen(row, name.source))]
        self._log = {**honest, name: rows}
        try:
            return super().partner(occurrence, answer)
        finally:
            self._log = honest

    def seen(self, row: LogRow, source: str) -> LogRow | None:
        raise NotImplementedError

    def cns(self, source: str, *, reflected: bool) -> list[int]:
        logs = (rows for name, rows in self._log.items() if name.source == source)
        return [row.cn for rows in logs for row in rows if row.reflected is reflected]


class Uncompensated(_LogMutant):
    """The conventional algorithm: takes an answer as it is."""

    def seen(self, row: LogRow, source: str) -> LogRow | None:
        return None


class BlindBeyondTheBatch(_LogMutant):
    """Keeps what the answers show of transactions after the batch."""

    def seen(self, row: LogRow, source: str) -> LogRow | None:
        return None if row.reflected and row.cn > self._batch.upto else row


class BlindBeforeTheBatch(_LogMutant):
    """Takes for granted that the answers show every earlier batch."""

    def seen(self, row: LogRow, source: str) -> LogRow | None:
        return None if not row.reflected and row.cn <= self._batch.after else row


class BlindToReflected(_LogMutant):
    """Does not take back what the answers show too early."""

    def seen(self, row: LogRow, source: str) -> LogRow | None:
        return None if row.reflected else row


class BlindToUnreflected(_LogMutant):
    """Does not add what the answers do not show yet."""

    def seen(self, row: LogRow, source: str) -> LogRow | None:
        return row if row.reflected else None


class PrefixUpToTheLast(_LogMutant):
    """Believes that a state that shows a transaction shows all before it."""

    def seen(self, row: LogRow, source: str) -> LogRow | None:
        last = max(self.cns(source, reflected=True), default=0)
        return replace(row, reflected=row.cn <= last)


class PrefixUpToTheFirstGap(_LogMutant):
    """Believes that a state that lacks a transaction lacks all after it."""

    def seen(self, row: LogRow, source: str) -> LogRow | None:
        missing = min(self.cns(source, reflected=False), default=row.cn + 1)
        return replace(row, reflected=row.cn < missing)


class UnfilteredLog(BagAlgebra):
    """Leaves the view's filter to the sources, who do not see log rows."""

    def partner(self, occurrence: Occurrence, answer: Handle) -> Partner:
        assert isinstance(answer, Answer)
        unbound, holds = ((),) * occurrence.number, interpret(occurrence.filter or "TRUE")
        rows = answer.rows.where(lambda row: holds((*unbound, row), {}) is True)
        return super().partner(replace(occurrence, filter=None), Answer(rows))


class _TimeMutant(BagAlgebra):
    """Joins with the partner at another time than the term of dV says."""

    def extend(
        self,
        partial: Handle,
        occurrence: Occurrence,
        partner: Handle,
        conditions: Sequence[str],
        *,
        own: bool,
    ) -> Partial:
        return super().extend(partial, occurrence, partner, conditions, own=self.own(own))

    def own(self, own: bool) -> bool:
        raise NotImplementedError


class AlwaysOwn(_TimeMutant):
    """Every partner with the transaction's own change: changes that meet are counted twice."""

    def own(self, own: bool) -> bool:
        return True


class NeverOwn(_TimeMutant):
    """Every partner without the transaction's own change: changes that meet are lost."""

    def own(self, own: bool) -> bool:
        return False


class Mirrored(_TimeMutant):
    """No mutant: the same sum, read from the last occurrence to the first."""

    def own(self, own: bool) -> bool:
        return not own


class AtTheBatchEnd(BagAlgebra):
    """Compensates to the end of the batch only, as if it were one transaction."""

    def partner(self, occurrence: Occurrence, answer: Handle) -> Partner:
        honest = super().partner(occurrence, answer)
        return Partner(Versions(honest.versions.at(self._batch.upto), ()))


class NullMatchesNull(BagAlgebra):
    """Joins with `<=>` where SQL says `=`."""

    def extend(
        self,
        partial: Handle,
        occurrence: Occurrence,
        partner: Handle,
        conditions: Sequence[str],
        *,
        own: bool,
    ) -> Partial:
        loose = [condition.replace(" = ", " <=> ") for condition in conditions]
        return super().extend(partial, occurrence, partner, loose, own=own)


class KeysOfAnswersOnly(BagAlgebra):
    """Forgets that a row it knows only from the log has partners too."""

    def partner(self, occurrence: Occurrence, answer: Handle) -> Partner:
        assert isinstance(answer, Answer)
        partner = super().partner(occurrence, answer)
        self._answers = {**getattr(self, "_answers", {}), id(partner): (partner, answer)}
        return partner

    def keys(self, handles: Sequence[Handle], occurrence: Occurrence, column: int) -> Keys:
        shown = [self._answers[id(h)][1].rows if isinstance(h, Partner) else None for h in handles]
        only = [
            handle if rows is None else Partner(Versions(rows, ()))
            for handle, rows in zip(handles, shown, strict=True)
        ]
        return super().keys(only, occurrence, column)


class KeysOfStartsOnly(BatchedSweep[Handle]):
    """Asks along an edge for the changed rows there, not for rows that the sweep brings there."""

    def _into(self, edge: Edge) -> list[Edge]:
        return []


class OneStartForgotten(BatchedSweep[Handle]):
    """Leaves out the term that starts at the last changed occurrence."""

    def _change(self) -> Handle:
        starts = sorted(self._changed)[:-1]
        return self._algebra.add([self._sweep(i) for i in starts])


MUTANTS: dict[str, Sweeper] = {
    mutant.__name__: Sweeper(algebra=mutant)
    for mutant in (
        Uncompensated,
        BlindBeyondTheBatch,
        BlindBeforeTheBatch,
        BlindToReflected,
        BlindToUnreflected,
        PrefixUpToTheLast,
        PrefixUpToTheFirstGap,
        UnfilteredLog,
        AlwaysOwn,
        NeverOwn,
        AtTheBatchEnd,
        NullMatchesNull,
        KeysOfAnswersOnly,
    )
} | {mutant.__name__: Sweeper(sweep=mutant) for mutant in (KeysOfStartsOnly, OneStartForgotten)}
