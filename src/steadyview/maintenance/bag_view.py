"""From tagged joined rows to what a view shows, on in-memory bags.

A sweep ends with joined rows, each tagged with its cn. A SELECT-PROJECT-JOIN view projects them; an
aggregate view keeps the sum of what they contribute per (cn, group), and its visible rows are a
function of the running state:

    state(k)(group)  =  state(k-1)(group) + summary change(k)(group);    gone where COUNT(*) is 0

except for a global aggregate, whose only group is always there.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TypeAlias

from steadyview.algebra import Bag, Row, Summary, Value
from steadyview.maintenance.bag_algebra import Bound, Handle, Partial
from steadyview.views.definition import Definition, Grouping
from steadyview.views.interpret import interpret

State: TypeAlias = Mapping[Row, Summary]
"""The groups of an aggregate view, by the values of their keys."""


def projected(definition: Definition, change: Handle) -> dict[int, Bag[Row]]:
    """The change of a SELECT-PROJECT-JOIN view per cn; a cn that changes nothing is absent."""
    assert isinstance(change, Partial)
    columns = [interpret(output.sql) for output in definition.outputs]
    tagged = change.rows.map(lambda tag: (tag[0], tuple(c(tag[1], {}) for c in columns)))
    changes: dict[int, list[tuple[Row, int]]] = {}
    for (cn, row), count in tagged:
        changes.setdefault(cn, []).append((row, count))
    return {cn: Bag(rows) for cn, rows in sorted(changes.items())}


def summarized(grouping: Grouping, change: Handle) -> dict[int, dict[Row, Summary]]:
    """The summary delta of an aggregate view: per cn and group, without what changes nothing."""
    assert isinstance(change, Partial)
    deltas: dict[int, dict[Row, Summary]] = {}
    for (cn, bound), count in change.rows:
        group, summary = _contribution(grouping, bound, count)
        groups = deltas.setdefault(cn, {})
        groups[group] = groups[group] + summary if group in groups else summary
    kept = {cn: _without_nothing(groups) for cn, groups in sorted(deltas.items())}
    return {cn: groups for cn, groups in kept.items() if groups}


def rolled(state: State, delta: State) -> State:
    """The state after one cn's delta. Groups without rows are gone."""
    after = dict(state)
    for group, summary in delta.items():
        after[group] = after[group] + summary if group in after else summary
    return {group: summary for group, summary in after.items() if summary.count}


def visible(definition: Definition, state: State) -> Bag[Row]:
    """The rows that an aggregate view shows in a state. An average is an exact fraction here."""
    grouping = definition.grouping
    assert grouping is not None
    if not grouping.keys and not state:
        state = {(): Summary.of([None] * len(grouping.arguments), 0)}
    return Bag.of(_shown(definition, group, summary) for group, summary in state.items())


def _contribution(grouping: Grouping, bound: Bound, count: int) -> tuple[Row, Summary]:
    group = tuple(interpret(key)(bound, {}) for key in grouping.keys)
    arguments = [interpret(argument.sql)(bound, {}) for argument in grouping.arguments]
    summed = zip(grouping.arguments, arguments, strict=True)
    # An argument that is only counted has no sum; 0 stands for any value of it.
    values = [v if argument.summed or v is None else 0 for argument, v in summed]
    return group, Summary.of(values, count)


def _without_nothing(groups: State) -> dict[Row, Summary]:
    return {group: summary for group, summary in groups.items() if not summary.is_nothing}


def _shown(definition: Definition, group: Row, summary: Summary) -> Row:
    names: dict[str, Value] = {"_count": summary.count}
    names |= {f"_g{g}": value for g, value in enumerate(group)}
    for a, (nonnull, total) in enumerate(zip(summary.nonnull, summary.sums, strict=True)):
        names |= {f"_nonnull_{a}": nonnull, f"_sum_{a}": total}
        names[f"_visible_sum_{a}"] = total if nonnull else None
        names[f"_visible_avg_{a}"] = Fraction(total) / nonnull if nonnull else None
    return tuple(interpret(output.sql)((), names) for output in definition.outputs)
