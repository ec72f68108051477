"""The four moves of which every operator's rule is made: join, step, level, split.

    join    two versions meet while both hold: n is the product, from the later, to the earlier one
    step    +n where a version starts inside the window, -n where it ends, summed per key and cn
    level   the sums at a, plus the running sum of the steps: per key versions again
    split   a version is cut where the versions that it meets start and end

All texts are SELECTs over columns whose names are unique in their block, so that an expression
means the same wherever it stands. A text names its input once: Spark computes a named part anew at
every mention.
"""

from __future__ import annotations

from collections.abc import Sequence

from steadyview.plans.operator import Rendering

N, FROM, TO = "_n", "_from", "_to"
REACH = "_reach"
CN, CHANGE = "_cn", "_d"
BEGINNING = 0
FOREVER = 2**63 - 1
VERSION = (N, FROM, TO)


def carried(rendering: Rendering) -> tuple[str, ...]:
    """The columns of a version beside those of its row."""
    return (*VERSION, REACH) if rendering.flags.reach else VERSION


def overlap(left: str, right: str) -> str:
    """Both versions hold at some cn."""
    return f"{left}.{FROM} < {right}.{TO} AND {right}.{FROM} < {left}.{TO}"


def meeting(left: str, right: str, keys: Sequence[str], condition: str | None) -> str:
    """The ON of a join of versions.

    An expression is evaluated only where both rows are there at once: it may fail on rows that
    never met. Spark may evaluate the parts of an AND in any order, but not those of a CASE.
    """
    holds = overlap(left, right)
    parts = [*keys, holds]
    if condition:
        parts.append(f"CASE WHEN {holds} THEN ({condition}) ELSE FALSE END")
    return " AND ".join(parts)


def joined(rendering: Rendering, sides: tuple[str, str], columns: Sequence[str], on: str) -> str:
    """The versions of two parts that meet."""
    listed = [
        *columns,
        f"l.{N} * r.{N} AS {N}",
        f"GREATEST(l.{FROM}, r.{FROM}) AS {FROM}",
        f"LEAST(l.{TO}, r.{TO}) AS {TO}",
    ]
    if rendering.flags.reach:
        listed.append(f"{either(f'l.{REACH}', f'r.{REACH}')} AS {REACH}")
    return f"SELECT {', '.join(listed)} FROM {sides[0]} l JOIN {sides[1]} r ON {on}"


def either(left: str, right: str) -> str:
    """The bits of a pair: those of both."""
    return f"{left} | {right}"


def levels(
    steps: str, state: str | None, keys: Sequence[str], sums: Sequence[tuple[str, str]]
) -> str:
    """Every step of a part with the sums before and after it; `sums` are names and types.

    The columns: keys, cn, and of each sum `_step_`, `_before_` and `_after_`. `state`: a FROM item
    of the sums at a; None: there are none.
    """
    names = [name for name, _ in sums]
    rows = f"SELECT {', '.join([*keys, CN, *names])} FROM {steps}"
    if state is not None:
        at_a = ", ".join([*keys, f"CAST({BEGINNING} AS BIGINT) AS {CN}", *names])
        rows += f" UNION ALL SELECT {at_a} FROM {state}"
    partition = f"PARTITION BY {', '.join(keys)} " if keys else ""
    window = f"{partition}ORDER BY {CN} RANGE BETWEEN UNBOUNDED PRECEDING AND"
    listed = [*keys, CN, *(f"{n} AS _step_{n}" for n in names)]
    for name, type_ in sums:
        # summed anew, not subtracted: a difference of decimals may lose digits
        before = f"CAST(SUM({name}) OVER ({window} 1 PRECEDING) AS {type_})"
        listed.append(f"COALESCE({before}, CAST(0 AS {type_})) AS _before_{name}")
        after = f"SUM({name}) OVER ({window} CURRENT ROW)"
        listed.append(f"CAST({after} AS {type_}) AS _after_{name}")
    return f"SELECT {', '.join(listed)} FROM ({rows})"


def ends(rendering: Rendering, versions: str, columns: Sequence[str], *, beginning: bool) -> str:
    """The steps of a part's versions, one by one: `columns`, the cn and the signed count.

    `beginning`: those at the beginning alone, as for a first state; else those inside the window.
    """
    starts = {CN: FROM, CHANGE: N}
    stops = {CN: TO, CHANGE: f"-{N}"}
    rows = rendering.part(rendering.dialect.exploded(versions, columns, [starts, stops]))
    wanted = f"{CN} = {BEGINNING}" if beginning else f"{CN} > {BEGINNING} AND {CN} < {FOREVER}"
    return f"SELECT * FROM {rows} WHERE {wanted}"
