"""Readings of answers and log that are wrong, for cases written by hand: each has its case."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from steadyview.plans.moves import overlap
from steadyview.simulation.view_plan import ViewPlan
from steadyview.simulation.window import LogRow, Window
from tests.plans.cases import Reading


def uncompensated(entry: LogRow, log: Sequence[LogRow], after: int, upto: int) -> LogRow:
    """Takes an answer as the state before the batch."""
    return replace(entry, reflected=entry.cn <= after)


def blind_beyond_the_batch(entry: LogRow, log: Sequence[LogRow], after: int, upto: int) -> LogRow:
    """Keeps what the answers show of transactions after the batch."""
    return replace(entry, reflected=entry.reflected and entry.cn <= upto)


def blind_before_the_batch(entry: LogRow, log: Sequence[LogRow], after: int, upto: int) -> LogRow:
    """Takes for granted that the answers show every earlier batch."""
    return replace(entry, reflected=entry.reflected or entry.cn <= after)


def blind_to_reflected(entry: LogRow, log: Sequence[LogRow], after: int, upto: int) -> LogRow:
    """Does not take back what the answers show too early."""
    return replace(entry, reflected=entry.reflected and entry.cn <= after)


def blind_to_unreflected(entry: LogRow, log: Sequence[LogRow], after: int, upto: int) -> LogRow:
    """Takes for granted that the answers show everything."""
    return replace(entry, reflected=True)


def prefix_up_to_the_last(entry: LogRow, log: Sequence[LogRow], after: int, upto: int) -> LogRow:
    """Believes that a state that shows a transaction shows all before it."""
    last = max((e.cn for e in log if e.reflected), default=0)
    return replace(entry, reflected=entry.cn <= last)


def prefix_up_to_the_first_gap(
    entry: LogRow, log: Sequence[LogRow], after: int, upto: int
) -> LogRow:
    """Believes that a state that lacks a transaction lacks all after it."""
    missing = min((e.cn for e in log if not e.reflected), default=entry.cn + 1)
    return replace(entry, reflected=entry.cn < missing)


def at_the_batch_end(entry: LogRow, log: Sequence[LogRow], after: int, upto: int) -> LogRow:
    """Takes the batch for one transaction."""
    return replace(entry, cn=upto) if after < entry.cn <= upto else entry


class KeysOfAnswersOnly(Window):
    """Forgets that a row it knows only from the log has partners too."""

    def _tell(self) -> None:
        for ask in self._round:
            wanted = self._wanted(ask)
            answers = self._inputs[wanted.relation].answers
            rows = [row for _, rows in answers for row in rows if wanted.has(row)]
            self._asking.answered(ask, rows)


class KeysOfChangesOnly(Window):
    """Asks along a link for the changed rows there, not for rows that answers bring there."""

    def _tell(self) -> None:
        for ask in self._round:
            self._asking.answered(ask, [])


@dataclass(frozen=True)
class _Rewritten(ViewPlan):
    """The plan with another text."""

    change: Callable[[str], str] = str

    @property
    def _text(self) -> str:
        return self.change(ViewPlan(self.node, self.reads)._text)


def null_matches_null(plan: ViewPlan) -> ViewPlan:
    """Joins with `<=>` where SQL says `=`."""
    equal, alike = r"(l\.\w+) = (r\.\w+)", r"\1 IS NOT DISTINCT FROM \2"
    return _Rewritten(plan.node, plan.reads, lambda text: re.sub(equal, alike, text))


def met_at_any_time(plan: ViewPlan) -> ViewPlan:
    """Joins rows that were never there at once."""
    return _Rewritten(
        plan.node, plan.reads, lambda text: text.replace(overlap("l", "r"), "TRUE")
    )


READINGS: dict[str, Reading] = {
    **{
        believed.__name__: Reading(believed=believed)
        for believed in (
            uncompensated,
            blind_beyond_the_batch,
            blind_before_the_batch,
            blind_to_reflected,
            blind_to_unreflected,
            prefix_up_to_the_last,
            prefix_up_to_the_first_gap,
            at_the_batch_end,
        )
    },
    "keys_of_answers_only": Reading(window=KeysOfAnswersOnly),
    "keys_of_changes_only": Reading(window=KeysOfChangesOnly),
    "null_matches_null": Reading(planned=null_matches_null),
    "met_at_any_time": Reading(planned=met_at_any_time),
}
