"""Plausible readings of the rules that are wrong. The generated histories must convict each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from steadyview.plans import (
    asking,
    flags,
    fold,
    inner_join,
    lineage,
    links,
    moves,
    split_join,
    versions,
)
from steadyview.plans.links import Link
from steadyview.plans.split_join import SplitJoin
from tests.plans import batches

Mutant = Callable[[], Any]


def _rewritten(owner: Any, name: str, change: Callable[[str], str]) -> Any:
    """The text that a function gives, changed."""
    honest = getattr(owner, name)
    return patch.object(owner, name, lambda *a, **k: change(honest(*a, **k)))


def own_keys_not_asked() -> Any:
    """LEFT, semi and the like ask the inner side for the keys of the outer change alone."""
    honest = links._link

    def dull(join: Any, columns: Any) -> Link:
        link = honest(join, columns)
        return Link(replace(link.left, own=False), replace(link.right, own=False))

    return patch.object(links, "_link", dull)


def padded_rows_stay() -> Any:
    """An outer join of versions as SQL pads it: gaps are not filled."""
    return patch.object(split_join, "_gaps", lambda side, piece: _only_unmatched(side, piece))


def _only_unmatched(side: str, piece: int) -> list[Any]:
    unmatched = f"CASE WHEN _met_from IS NULL THEN _{side}_from END"
    return [{"_piece": str(piece), "_n": f"_{side}_n", "_from": unmatched, "_to": f"_{side}_to"}]


def gap_from_the_last_partner() -> Any:
    """The gap begins where the partner before ends, not where the latest of all ends."""
    return _rewritten(
        SplitJoin,
        "_windowed",
        lambda text: text.replace("UNBOUNDED PRECEDING AND 1", "1 PRECEDING AND 1"),
    )


def no_gap_at_the_end() -> Any:
    honest = split_join._gaps
    return patch.object(split_join, "_gaps", lambda side, piece: honest(side, piece)[:1])


def covered_twice() -> Any:
    """A semi join counts a row once per partner."""
    covered = {**split_join._COVERED, "_from": "_met_from"}
    return patch.object(split_join, "_COVERED", covered)


def overlap_forgotten() -> Any:
    return patch.object(
        inner_join, "meeting", lambda left, right, keys, condition: " AND ".join([*keys, "TRUE"])
    )


def constants_joined_stand_nowhere() -> Any:
    """A constant column of a join needs no lookup."""
    honest = lineage._passed

    def dull(operator: Any, name: str) -> Any:
        below = next((o for o in operator.operands if name in o.columns), None)
        found = None if below is None else lineage._origin(below, name)
        return found if found is not None and found.constant else honest(operator, name)

    return patch.object(lineage, "_passed", dull)


def outer_side_read_from_its_partner() -> Any:
    """A LEFT JOIN is read whole by reading its inner side whole."""
    honest = links.entry

    def dull(operator: Any) -> frozenset[int]:
        if isinstance(operator, SplitJoin) and operator.kind == "left":
            return dull(operator.right)
        return honest(operator)

    return patch.object(links, "entry", dull)


def answers_overlap() -> Any:
    """Two answers about one row both count."""
    honest = versions.versions

    def dull(columns: Any, log: Any, replies: Any, after: int, upto: int) -> Any:
        twice = [_Twice(r.rows, r.reflects, r.column, r.keys) for r in replies]
        return honest(columns, log, twice, after, upto)

    return patch.object(batches, "versions", dull)


class _Twice(versions.Reply):
    """Says of answered rows that they are not its own."""

    def belongs(self, rows: pa.Table) -> np.ndarray:
        if "_cn" in rows.column_names:
            return super().belongs(rows)
        return np.zeros(rows.num_rows, dtype=bool)


def one_moment_for_all_answers() -> Any:
    """Every answer about a relation is taken to reflect what the first one does."""
    honest = versions.versions

    def dull(columns: Any, log: Any, replies: Any, after: int, upto: int) -> Any:
        same = [replace(r, reflects=replies[0].reflects) for r in replies]
        return honest(columns, log, same, after, upto)

    return patch.object(batches, "versions", dull)


def _log_without(drop: Callable[[Any, np.ndarray, int], np.ndarray]) -> Any:
    honest = versions.versions

    def dull(columns: Any, log: Any, replies: Any, after: int, upto: int) -> Any:
        cns = log.rows.column("_cn").to_numpy()
        blind = [replace(r, reflects=drop(r, cns, after)) for r in replies]
        return honest(columns, log, blind, after, upto)

    return patch.object(batches, "versions", dull)


def not_shown_yet_is_forgotten() -> Any:
    """What was admitted before the batch is taken to be shown."""
    return _log_without(lambda reply, cns, after: reply.reflects | (cns <= after))


def shown_too_early_is_kept() -> Any:
    """What an answer shows of transactions after the batch's start is not taken back."""
    return _log_without(lambda reply, cns, after: reply.reflects & (cns <= after))


def shown_up_to_the_last() -> Any:
    """A state that shows a transaction is taken to show all before it."""
    return _log_without(lambda r, cns, _: cns <= max(cns[r.reflects], default=0))


def shown_up_to_the_first_gap() -> Any:
    """A state that lacks a transaction is taken to lack all after it."""
    return _log_without(lambda r, cns, _: cns < min(cns[~r.reflects], default=versions.FOREVER))


def one_state_a_batch() -> Any:
    """All of a batch's transactions happen at its end."""
    honest = versions.versions

    def dull(columns: Any, log: Any, replies: Any, after: int, upto: int) -> Any:
        cns = log.rows.column("_cn").to_numpy()
        late = np.where((cns > after) & (cns <= upto), upto, cns)
        place = log.rows.column_names.index("_cn")
        moved = log.rows.set_column(place, "_cn", pa.array(late, pa.int64()))
        return honest(columns, versions.Logged(moved), replies, after, upto)

    return patch.object(batches, "versions", dull)


def null_meets_null() -> Any:
    """Joins with `<=>` where SQL says `=`."""
    alike = property(lambda e: f"l.{e.left} IS NOT DISTINCT FROM r.{e.right}")
    return patch.object(inner_join.Equality, "sql", alike)


def keys_of_changes_only() -> Any:
    """Rows that answers bring have no partners looked up."""
    return patch.object(asking.Asking, "answered", lambda self, ask, rows: None)


def null_rows_lost() -> Any:
    """A row whose key is NULL counts as one that an earlier answer was asked for."""
    honest = versions.Reply.belongs

    def dull(self: Any, rows: pa.Table) -> np.ndarray:
        found = honest(self, rows)
        if self.column is None or "_cn" in rows.column_names:
            return found
        return found | rows.column(self.column).is_null().to_numpy()

    return patch.object(versions.Reply, "belongs", dull)


def old_row_stays() -> Any:
    """A group's new row comes, its old one does not go."""
    return _rewritten(
        fold.Fold, "statement", lambda text: text.replace("_old_times, ", "0 AS _old_times, ")
    )


def state_of_shown_groups_only() -> Any:
    """HAVING also forgets the state of the groups that it hides."""
    honest = batches.Graph._apply

    def dull(
        self: Any, kept: Any, rows: Any, keys: int, sums: int, after: int, **more: Any
    ) -> None:
        honest(self, kept, rows, keys, sums, after, **more)
        for row in rows:
            half = (len(row) - keys - 1 - sums) // 2
            if keys and not row[keys + 1 + sums + half]:
                kept.state.pop(row[:keys], None)

    return patch.object(batches.Graph, "_apply", dull)


def null_group_begins_anew() -> Any:
    """The state of the group NULL is not found."""
    honest = batches.Graph._keep

    def dull(self: Any, node: Any, after: int, **more: Any) -> None:
        state = self.kept[node.number].state
        for key in [k for k in state if None in k]:
            del state[key]
        honest(self, node, after, **more)

    return patch.object(batches.Graph, "_keep", dull)


def keys_that_feed_are_not_waited_for() -> Any:
    """Every direction is sent once, with the keys that are there at first."""
    honest = asking.Asking._wanted

    def dull(self: Any, direction: Any) -> Any:
        return asking._NOTHING if direction in self._sent else honest(self, direction)

    @contextmanager
    def both() -> Iterator[None]:
        with (
            patch.object(asking.Asking, "_wanted", dull),
            patch.object(asking.Asking, "_held", lambda self, direction, pending: False),
        ):
            yield

    return both()


def reach_not_looked_at() -> Any:
    """An unchanged row has no mark, whatever change it can still meet."""
    honest = flags.marked
    return patch.object(flags, "marked", lambda bits: honest(0))


def reach_of_the_left_row_alone() -> Any:
    """A joined row reaches what its left row does."""
    return patch.object(moves, "either", lambda left, right: left)


def right_row_under_one_flag() -> Any:
    """A marked right row meets marked left rows alone."""
    return patch.object(flags, "stands", lambda mark: [{flags.FLAG: "1"}])


def left_rows_never_marked() -> Any:
    """A changed left row meets changed right rows alone."""
    return patch.object(
        inner_join,
        "left_flagged",
        lambda rendering, part, bits: rendering.part(f"SELECT *, 0 AS {flags.FLAG} FROM {part}"),
    )


def no_partner_for_all_time() -> Any:
    """Gaps are looked for among the partners that change."""

    def dull(rendering: Any, part: str, columns: Any, keys: Any, bits: int) -> str:
        return flags.right_flagged(rendering, part, columns, bits)

    return patch.object(split_join, "partners_flagged", dull)


def any_partner_for_all_time() -> Any:
    """The first row of a key stands for the others, even if it comes or goes."""

    def dull(rendering: Any, part: str, columns: Any, keys: Any, bits: int) -> str:
        place = f"ROW_NUMBER() OVER (PARTITION BY {', '.join(keys) or '1'}) AS _place"
        part = rendering.part(f"SELECT *, {place} FROM {part}")
        pieces = flags.stands(f"{flags.marked(bits)} OR _place = 1")
        kept = [*columns, *moves.carried(rendering)]
        return rendering.part(rendering.dialect.exploded(part, kept, pieces))

    return patch.object(split_join, "partners_flagged", dull)


FLAG_MUTANTS: tuple[Mutant, ...] = (
    reach_not_looked_at,
    reach_of_the_left_row_alone,
    right_row_under_one_flag,
    left_rows_never_marked,
    no_partner_for_all_time,
    any_partner_for_all_time,
)
"""Those that only statements with flags convict."""

MUTANTS: tuple[Mutant, ...] = (
    own_keys_not_asked,
    padded_rows_stay,
    gap_from_the_last_partner,
    no_gap_at_the_end,
    covered_twice,
    overlap_forgotten,
    constants_joined_stand_nowhere,
    outer_side_read_from_its_partner,
    answers_overlap,
    one_moment_for_all_answers,
    not_shown_yet_is_forgotten,
    shown_too_early_is_kept,
    shown_up_to_the_last,
    shown_up_to_the_first_gap,
    one_state_a_batch,
    null_meets_null,
    keys_of_changes_only,
    null_rows_lost,
    old_row_stays,
    state_of_shown_groups_only,
    null_group_begins_anew,
    keys_that_feed_are_not_waited_for,
)
