"""Plausible readings of MIN and MAX that are wrong. The crowded histories must convict each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from steadyview.plans import ends, extremes, links
from steadyview.plans.ends import Ends
from steadyview.plans.extreme import Extreme
from steadyview.plans.inner_join import InnerJoin
from steadyview.plans.moves import FOREVER
from steadyview.plans.versions import versions
from tests.plans import batches

Mutant = Callable[[], Any]
_honest = Ends.of


def _rewritten(name: str, old: str, new: str) -> Any:
    """A part of the operator's text, changed."""
    honest = getattr(Extreme, name)

    def dull(self: Extreme, *given: Any) -> str:
        text = str(honest(self, *given))
        assert old in text
        return text.replace(old, new)

    return patch.object(Extreme, name, dull)


def touched_values_only() -> Any:
    """Of a group only the values are read that the window touches."""
    return patch.object(Ends, "of", lambda *given: _touched(*given, wanted=True))


def logged_rows_not_read() -> Any:
    """What the log speaks of is taken to have been there only if it says so."""
    return patch.object(Ends, "of", lambda *given: _touched(*given, wanted=False))


def _touched(ends: Ends, rows: pa.Table, logged: pa.Table, *, wanted: bool) -> pa.Table:
    """Of the ends, those that the log speaks of, or the others."""
    found, value = _honest(ends, rows, logged), f"c{ends.value}"
    touched = [v in logged[value].to_pylist() for v in found[value].to_pylist()]
    return found.filter(pa.array([t is wanted for t in touched], pa.bool_()))


def the_best_alone() -> Any:
    """The best value is read, not the best of those that stay: one too few for what goes."""

    def dull(self: Ends, rows: pa.Table, logged: pa.Table) -> pa.Table:
        return _honest(self, rows, logged.slice(0, 0))

    return patch.object(Ends, "of", dull)


def the_best_at_the_end() -> Any:
    """The group is refilled as of the window's end."""

    def dull(self: Ends, window: tuple[int, int], reply: Any, log: Any) -> pa.Table:
        columns = reply.rows.column_names
        near = replace(reply, rows=self.of(reply.rows, log.rows))
        return versions(columns, log, [near], window[1], window[1]).select(columns)

    return patch.object(Ends, "at", dull)


def not_taken_back_to_the_start() -> Any:
    """The rows at a node's base are taken for those at the window's start."""
    return patch.object(Ends, "at", lambda self, window, reply, log: self.of(reply.rows, log.rows))


def groups_told_apart_by_number() -> Any:
    """Two groups of one number have the ends of one."""
    honest = ends.ends

    def dull(block: Any) -> dict[int, Ends]:
        return {scan: _Numbered(found.keys, found.value) for scan, found in honest(block).items()}

    return patch.object(batches, "ends", dull)


class _Numbered(Ends):
    def of(self, rows: pa.Table, logged: pa.Table) -> pa.Table:
        found: dict[Any, list[dict[str, Any]]] = {}
        for row in _honest(self, rows, logged).to_pylist():
            found.setdefault(row["c0"], []).append(row)
        values, kept = logged[f"c{self.value}"].to_pylist(), []
        for group in found.values():
            others = [r for r in group if r[f"c{self.value}"] not in values]
            others.sort(key=lambda r: (r[f"c{self.value}"] is None, r[f"c{self.value}"] or 0))
            kept += [r for r in group if r not in others] + others[:1] + others[1:][-1:]
        return pa.Table.from_pylist(kept, rows.schema)


def joined_by_number() -> Any:
    """Totals and extremes of two groups of one number meet."""
    honest = extremes._beside

    def dull(left: Any, right: Any, keys: Any) -> Any:
        made = honest(left, right, keys)
        return replace(made, equalities=made.equalities[:1])

    return patch.object(extremes, "_beside", dull)


def groups_not_asked_for() -> Any:
    """A group's own change asks for none of its values."""
    honest = links._of_groups

    def dull(extreme: Extreme) -> links.Link:
        link = honest(extreme)
        return replace(link, right=replace(link.right, own=False))

    return patch.object(links, "_of_groups", dull)


def null_is_the_best() -> Any:
    return _rewritten("_trimmed", " IS NULL, ", " IS NOT NULL, ")


def whatever_ends_was_there_from_the_beginning() -> Any:
    """A better value hides all that came before its end, not only what it was there with."""
    return _rewritten("_trimmed", "CASE WHEN _from = 0 THEN _to END", f"NULLIF(_to, {FOREVER})")


def whatever_comes_stays() -> Any:
    """A better value hides a worse one from its start on, though it goes again."""
    return _rewritten("_trimmed", f"CASE WHEN _to = {FOREVER} THEN _from END", "NULLIF(_from, 0)")


def the_worst_first() -> Any:
    """Worse values trim better ones."""
    behind = "1 FOLLOWING AND UNBOUNDED FOLLOWING"
    return _rewritten("_trimmed", "UNBOUNDED PRECEDING AND 1 PRECEDING", behind)


def not_cut() -> Any:
    """Every version is a piece of its own."""
    return _rewritten("_begun", "THEN 0", "THEN 1")


def islands_by_the_last_version() -> Any:
    """An island ends where the version before ends, not where the latest of all does."""
    return _rewritten("_begun", "UNBOUNDED PRECEDING AND 1", "1 PRECEDING AND 1")


def nothing_has_no_row() -> Any:
    """Without keys, no rows show no row."""
    honest = extremes._beside

    def dull(left: Any, right: Any, keys: Any) -> Any:
        made = honest(left, right, keys)
        return InnerJoin(left, right, made.equalities)

    return patch.object(extremes, "_beside", dull)


MUTANTS: tuple[Mutant, ...] = (
    touched_values_only,
    the_best_alone,
    the_best_at_the_end,
    not_taken_back_to_the_start,
    logged_rows_not_read,
    groups_told_apart_by_number,
    joined_by_number,
    groups_not_asked_for,
    null_is_the_best,
    whatever_ends_was_there_from_the_beginning,
    whatever_comes_stays,
    the_worst_first,
    not_cut,
    islands_by_the_last_version,
    nothing_has_no_row,
)
