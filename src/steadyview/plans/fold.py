"""The fold: what keeps a state. Sums per key, and what is shown of them.

    step(g, k)   =  sum of  d x argument  over the steps at cn k of rows whose key is g
    level(g, k)  =  state(g)  +  sum{ step(g, s) : s <= k }
    shown(g, k)  =  f(level(g, k)), `times` copies of it; nothing where `times` is not above zero

COUNT, SUM, AVG are sums per group; DISTINCT and UNION a count per row; INTERSECT and EXCEPT, ALL or
not, two counts per row. Since every step also knows the level before it, the change of what is
shown falls out of one running sum: the old row goes, the new one comes.

Needed: the state of every key that the batch touches, hidden groups (HAVING) included; of other
keys it does no harm. Without keys there is one row, also of nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from steadyview.plans.moves import BEGINNING, CN, VERSION, ends, levels
from steadyview.plans.operator import Operator, Rendering

SAME, BELOW = "_same", "_below"
ROWS = "_rows"
"""The sum that every fold has: how many rows a key has."""


@dataclass(frozen=True)
class Key:
    """A column of the key under a name: `sql` over the block's columns, and its type."""

    name: str
    sql: str
    type: str = "BIGINT"


@dataclass(frozen=True)
class Sum:
    """A running sum under a name: `sql` is what each row adds, never NULL, `type` what keeps it."""

    name: str
    sql: str
    type: str = "BIGINT"


@dataclass(frozen=True)
class Fold:
    """Sums per key of the rows of a block, and the rows that are shown of them.

    `values` are what people call aggregates: names and expressions over the sums (`_rows` among
    them). `outputs`, `times` and `having` are expressions over keys, sums and values; `times` says
    how many copies of the outputs are shown.
    """

    keys: tuple[Key, ...]
    sums: tuple[Sum, ...]
    outputs: tuple[tuple[str, str], ...]
    times: str
    having: str | None = None
    values: tuple[tuple[str, str], ...] = ()

    @property
    def key_names(self) -> tuple[str, ...]:
        """What the state is found by."""
        return tuple(key.name for key in self.keys)

    @property
    def state_columns(self) -> tuple[tuple[str, str], ...]:
        """The columns of the state with their types."""
        keys = tuple((k.name, k.type) for k in self.keys)
        return keys + tuple((s.name, s.type) for s in self.all_sums)

    @property
    def all_sums(self) -> tuple[Sum, ...]:
        """`_rows`, then the others."""
        return (Sum(ROWS, "1"), *self.sums)

    @property
    def state_names(self) -> tuple[str, ...]:
        """The columns of the state."""
        return (*self.key_names, *(s.name for s in self.all_sums))

    def statement(
        self, block: Operator, rendering: Rendering, state: str | None, *, beginning: bool
    ) -> str:
        """One row per key and cn that the batch touches.

        Its columns: the keys, `_cn`, the sums' steps, and what was shown before and after:
        `_old_times` and `_old_{output}`, `_new_times` and `_new_{output}`, times being zero where
        nothing is; `_same`: both are alike; `_below`: the key would have fewer than no rows.
        `state`: a FROM item of the state's rows at a; None with `beginning`, for a first state.
        """
        steps = self._steps(block, rendering, beginning=beginning)
        names = [s.name for s in self.all_sums]
        kept_sums = [(s.name, s.type) for s in self.all_sums]
        rows = rendering.part(levels(steps, state, self.key_names, kept_sums))
        kept = [
            *(*self.key_names, CN),
            *(f"_{m}_{n}" for m in ("step", "before", "after") for n in names),
        ]
        rows = self._with_shown(rendering, rows, kept, "before", "old")
        kept += [f"_old_{n}" for n in self._shown_names]
        rows = self._with_shown(rendering, rows, kept, "after", "new")
        listed = [*self.key_names, CN, *(f"_step_{n} AS {n}" for n in names)]
        listed += [f"_{shown}_{n}" for shown in ("old", "new") for n in self._shown_names]
        alike = (f"_old_{n} IS NOT DISTINCT FROM _new_{n}" for n in self._shown_names)
        listed.append(f"{' AND '.join(alike)} AS {SAME}")
        listed.append(f"_before_{ROWS} + _step_{ROWS} < 0 AS {BELOW}")
        wanted = f" WHERE {CN} > {BEGINNING}" if not beginning else ""
        return f"SELECT {', '.join(listed)} FROM {rows}{wanted}"

    def touched(self, block: Operator, rendering: Rendering) -> str:
        """The keys of the rows that change in the window, each once."""
        steps = self._steps(block, rendering, beginning=False)
        return rendering.statement(f"SELECT DISTINCT {', '.join(self.key_names)} FROM {steps}")

    @property
    def _shown_names(self) -> tuple[str, ...]:
        return ("times", *(name for name, _ in self.outputs))

    def _steps(self, block: Operator, rendering: Rendering, *, beginning: bool) -> str:
        """The state's change: keys, cn, the sums' steps."""
        arguments = [(f"_x{i}", s) for i, s in enumerate(self.all_sums)]
        names = [*self.key_names, *(x for x, _ in arguments)]
        listed = [f"{key.sql} AS {key.name}" for key in self.keys]
        listed += [f"CAST({s.sql} AS {s.type}) AS {x}" for x, s in arguments]
        versions = rendering.part(block.versions(rendering))
        rows = rendering.part(f"SELECT {', '.join([*listed, *VERSION])} FROM {versions}")
        single = ends(rendering, rows, names, beginning=beginning)
        if beginning and not self.keys:
            nothing = ", ".join(f"CAST(0 AS {s.type})" for _, s in arguments)
            single += f" UNION ALL SELECT {nothing}, CAST({BEGINNING} AS BIGINT), CAST(0 AS BIGINT)"
        sums = ", ".join(
            f"CAST(SUM({rendering.dialect.times(x, s.type)}) AS {s.type}) AS {s.name}"
            for x, s in arguments
        )
        by = ", ".join([*self.key_names, CN])
        return rendering.part(f"SELECT {by}, {sums} FROM ({single}) GROUP BY {by}")

    def _with_shown(
        self, rendering: Rendering, rows: str, kept: Sequence[str], moment: str, shown: str
    ) -> str:
        """The rows, and beside them what is shown of the sums at the moment."""
        sums = ", ".join(f"_{moment}_{s.name} AS {s.name}" for s in self.all_sums)
        there = f"({self.times}) > 0" + (f" AND ({self.having})" if self.having else "")
        columns = [f"CASE WHEN {there} THEN {self.times} ELSE 0 END AS _{shown}_times"]
        columns += [f"CASE WHEN {there} THEN {sql} END AS _{shown}_{n}" for n, sql in self.outputs]
        listed = ", ".join([*kept, *columns])
        seen = f"SELECT *, {sums} FROM {rows}"
        if self.values:
            values = ", ".join(f"{sql} AS {name}" for name, sql in self.values)
            seen = f"SELECT *, {values} FROM ({seen})"
        return rendering.part(f"SELECT {listed} FROM ({seen})")
