"""From joined rows to what a view stores: view delta rows, summary deltas, states, visible columns.

Stored names: visible column i of a SELECT-PROJECT-JOIN view is `o{i}`; a summary row has group keys
`_g{i}`, `_count` (rows), and per aggregated argument a `_nonnull_{a}` and, where summed,
`_sum_{a}`.

A summed argument is added once per copy, never multiplied by a count: a decimal product would lose
scale, a sum does not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from steadyview.engine.spark_algebra import Partial, Sum
from steadyview.views.definition import Definition, Grouping, Types

_PLAIN_OUTPUT = re.compile(r"_g\d+|_count|_nonnull_\d+|_visible_(sum|avg)_\d+")


def delta_sql(definition: Definition, types: Types, change: Sum) -> str:
    """The view delta: net change per row (or group) and cn."""
    if definition.grouping is None:
        return _net_rows(definition, change.terms, tagged=True)
    return _summary(definition.grouping, types, change.terms, tagged=True)


def state_sql(definition: Definition, types: Types, state: Sum) -> str:
    """The first state: net rows with `_count`, or one summary row per group."""
    if definition.grouping is None:
        return _net_rows(definition, state.terms, tagged=False)
    return _summary(definition.grouping, types, state.terms, tagged=False)


def delta_columns(definition: Definition, types: Types) -> list[tuple[str, str]]:
    """Stored columns of the view delta with their types; a state has the same but for `_cn`."""
    if definition.grouping is None:
        rows = [(f"o{i}", t) for i, (_, t) in enumerate(types.outputs)]
        return [*rows, ("_count", "BIGINT"), ("_cn", "BIGINT")]
    return [*summary_columns(definition, types), ("_cn", "BIGINT")]


def summary_columns(definition: Definition, types: Types) -> list[tuple[str, str]]:
    """Group keys, then the state columns."""
    assert definition.grouping is not None
    columns = [(f"_g{i}", t) for i, t in enumerate(types.keys)]
    columns.append(("_count", "BIGINT"))
    for a, state in enumerate(types.states):
        columns.append((f"_nonnull_{a}", "BIGINT"))
        if state:
            columns.append((f"_sum_{a}", state))
    return columns


def fragile(definition: Definition | None) -> bool:
    """Whether showing a state can fail although computing it did not.

    An expression over aggregates can: SUM(x) / SUM(y) of a group. Keys, counts, sums and averages
    as they are cannot, but for a sum beyond its type (see `warehouse.bounds`).
    """
    if definition is None or definition.grouping is None:
        return False
    return not all(_PLAIN_OUTPUT.fullmatch(output.sql) for output in definition.outputs)


def _net_rows(definition: Definition, terms: Sequence[Partial], *, tagged: bool) -> str:
    rows = " UNION ALL\n".join(
        "SELECT "
        + "".join(f"{o.sql} AS o{i}, " for i, o in enumerate(definition.outputs))
        + f"{t.count} AS _n, {t.tag} AS _cn FROM {t.source}"
        for t in terms
    )
    names = [f"o{i}" for i in range(len(definition.outputs))]
    by = names + (["_cn"] if tagged else [])
    listed = ", ".join(names)
    tag = ", _cn" if tagged else ""
    group = f" GROUP BY {', '.join(by)}" if by else ""
    return (
        f"SELECT {listed}, CAST(SUM(_n) AS BIGINT) AS _count{tag} FROM (\n{rows}\n)"
        f"{group} HAVING SUM(_n) <> 0"
    )


def _summary(grouping: Grouping, types: Types, terms: Sequence[Partial], *, tagged: bool) -> str:
    summed = any(a.summed for a in grouping.arguments)
    rows = " UNION ALL\n".join(_summary_rows(grouping, types, t) for t in terms)
    if summed:
        # one row per copy, so that sums add and never multiply
        rows = (
            "SELECT *, IF(_n > 0, 1L, -1L) AS _one FROM (\n"
            f"{rows}\n) LATERAL VIEW EXPLODE(SEQUENCE(1L, ABS(_n))) AS _copy WHERE _n <> 0"
        )
    one = "_one" if summed else "_n"
    keys = [f"_g{i}" for i in range(len(grouping.keys))]
    by = keys + (["_cn"] if tagged else [])
    outputs = [*keys, f"CAST(COALESCE(SUM({one}), 0) AS BIGINT) AS _count"]
    changed = ["_count <> 0"]
    for a, argument in enumerate(grouping.arguments):
        counted = f"SUM(IF(_x{a} IS NULL, 0L, {one}))"
        outputs.append(f"CAST(COALESCE({counted}, 0) AS BIGINT) AS _nonnull_{a}")
        changed.append(f"_nonnull_{a} <> 0")
        if argument.summed:
            total = f"SUM(IF(_one > 0, _x{a}, -_x{a}))"
            outputs.append(f"CAST(COALESCE({total}, 0) AS {types.states[a]}) AS _sum_{a}")
            changed.append(f"_sum_{a} <> 0")
    if tagged:
        outputs.append("_cn")
    if not by:
        # the state of a global aggregate is one row, also of nothing
        return f"SELECT {', '.join(outputs)} FROM (\n{rows}\n)"
    return (
        f"SELECT * FROM (SELECT {', '.join(outputs)} FROM (\n{rows}\n) GROUP BY {', '.join(by)}) "
        f"WHERE {' OR '.join(changed)}"
    )


def _summary_rows(grouping: Grouping, types: Types, term: Partial) -> str:
    keys = "".join(f"{k} AS _g{i}, " for i, k in enumerate(grouping.keys))
    arguments = "".join(
        f"{_argument(a.sql, types.states[i])} AS _x{i}, " for i, a in enumerate(grouping.arguments)
    )
    return f"SELECT {keys}{arguments}{term.count} AS _n, {term.tag} AS _cn FROM {term.source}"


def _argument(sql: str, state: str | None) -> str:
    return f"CAST({sql} AS {state})" if state else f"({sql})"


def visible_sql(definition: Definition, types: Types, states: str, keep: Sequence[str] = ()) -> str:
    """Visible rows of an aggregate view from its state rows (`states`: a FROM item).

    SUM over no non-NULL input is NULL; a group without rows is gone; a global aggregate is one row.
    `keep`: state columns to keep behind the visible ones.
    """
    assert definition.grouping is not None
    columns = ", ".join(
        f"CAST({o.sql} AS {t}) AS `{_quoted(name)}`"
        for o, (name, t) in zip(definition.outputs, types.outputs, strict=True)
    )
    columns = ", ".join([columns, *keep])
    helpers = "".join(f", {h}" for h in _visible_helpers(types))
    where = " WHERE _count > 0" if definition.grouping.keys else ""
    return f"SELECT {columns} FROM (SELECT *{helpers} FROM {states}){where}"


def sound(columns: Sequence[str], refusal: str) -> str:
    """The `_count` of a state row, or the error where it cannot be the summary of any rows.

    `columns`: those of the state; `refusal`: an expression that raises the error.
    """
    wrong = ["_count < 0"]
    for a in (n.removeprefix("_nonnull_") for n in columns if n.startswith("_nonnull_")):
        wrong.append(f"_nonnull_{a} < 0 OR _nonnull_{a} > _count")
        if f"_sum_{a}" in columns:
            wrong.append(f"(_nonnull_{a} = 0 AND _sum_{a} <> 0)")
    return f"IF({' OR '.join(wrong)}, CAST({refusal} AS BIGINT), _count)"


def visible_struct(definition: Definition, types: Types, states: str, refusal: str) -> str:
    """State rows with the visible row as one struct `_row`, NULL where the group has no rows."""
    assert definition.grouping is not None
    outputs = zip(definition.outputs, types.outputs, strict=True)
    columns = ", ".join(f"CAST({o.sql} AS {t})" for o, (_, t) in outputs)
    helpers = "".join(f", {h}" for h in _visible_helpers(types))
    least = 1 if definition.grouping.keys else 0
    state = [n for n, _ in summary_columns(definition, types)]
    there = f"{sound(state, refusal)} >= {least}"
    return (
        f"SELECT *, CASE WHEN {there} THEN STRUCT({columns}) END AS _row "
        f"FROM (SELECT *{helpers} FROM {states})"
    )


def _visible_helpers(types: Types) -> list[str]:
    """The columns `_visible_sum_{a}` and `_visible_avg_{a}` that output expressions speak of."""
    helpers = []
    for a, state in enumerate(types.states):
        if state is None:
            continue
        present = f"_nonnull_{a} > 0"
        helpers.append(
            f"CASE WHEN {present} THEN CAST(_sum_{a} AS {types.sums[a]}) END AS _visible_sum_{a}"
        )
        average = _average(f"_sum_{a}", f"_nonnull_{a}", str(types.averages[a]))
        helpers.append(f"CASE WHEN {present} THEN {average} END AS _visible_avg_{a}")
    return helpers


def _average(total: str, n: str, type_: str) -> str:
    """Total / n in the type of AVG; whole part and rest apart, so that no digit is cut early."""
    if not type_.startswith("DECIMAL"):
        return f"CAST({total} AS {type_}) / CAST({n} AS {type_})"
    count = f"CAST({n} AS DECIMAL(12,0))"
    rest = f"({total} % {count})"
    return (
        f"CAST(CAST(({total} - {rest}) / {count} AS {type_})"
        f" + CAST({rest} / {count} AS {type_}) AS {type_})"
    )


def _quoted(name: str) -> str:
    return name.replace("`", "``")
