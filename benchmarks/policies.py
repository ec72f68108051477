"""What 10,000 changes cost under each refresh policy, at three periods, and by plain Spark.

    python -m benchmarks.policies [--smoke]

The changes come in 16 batches. One view over three relations is kept once for each policy and
period, side by side in one process: an immediate one takes every batch, a deferred one is refreshed
every 1, 4 or 16 batches. Each step is done for one view alone, with the apply that it causes, and
the CPU-seconds of Python and Java are counted around it. Plain Spark exports the relations anew and
computes the SELECT at each refresh. In the end all views show the same rows.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks import by_hand, tpch
from benchmarks.accounted import used
from benchmarks.by_hand import ByHand
from benchmarks.findings import CPU, RATIO, Finding
from benchmarks.place import COPIES, Told, alone, postgres, teller
from benchmarks.plain_spark import PlainSpark, from_postgres
from benchmarks.report import findings_table
from benchmarks.site import AGGREGATE, USED, VIEWS, template, write_project
from benchmarks.tpch import Databases
from benchmarks.workload import Workload

BATCHES, PERIODS = 16, (1, 4, 16)
DEFERRED = ("ipda", "dpda", "snapshot")
PLAIN = "plain Spark"
SAME = "SELECT COUNT(*) AS n, BIT_XOR(XXHASH64(*)) AS rows FROM {}"


@dataclass(frozen=True)
class _Sizes:
    scale: float
    changes: int
    warm_ups: int
    rounds: int


FULL, SMOKE = _Sizes(0.1, 10_000, 1, 3), _Sizes(0.01, 320, 0, 1)
Cost = dict[tuple[str, int], float]
"""CPU-seconds of a round by policy and period."""


def names() -> dict[str, tuple[str, int]]:
    """The views, by name, with policy and period."""
    kept = {f"{policy}_{period}": (policy, period) for policy in DEFERRED for period in PERIODS}
    return {"immediate": ("immediate", 1), **kept}


def project(folder: Path, databases: Databases) -> Path:
    """One view for each policy and period."""
    write_project(folder, databases, (), "policies")
    for name, (policy, _) in names().items():
        create = f"CREATE MATERIALIZED VIEW {name} TBLPROPERTIES ('steadyview.policy' = '{policy}')"
        (folder / "views" / f"{name}.sql").write_text(f"{create} AS\n{VIEWS[AGGREGATE]}")
    return folder


class Bench:
    """The views, the changes, and what each step costs."""

    def __init__(self, views: ByHand, databases: Databases, folder: Path) -> None:
        self._views = views
        self._databases = databases
        self._work = Workload(databases)
        self._work.prepare()
        self._plain = PlainSpark(views.parts.spark, folder / "plain")

    def round(self, changes: int) -> Cost:
        """So many changes in batches, each followed by what every policy has to do then."""
        cost: Cost = dict.fromkeys([*names().values(), *((PLAIN, p) for p in PERIODS)], 0.0)
        for number in range(1, BATCHES + 1):
            self._work.mixed(changes // BATCHES)
            self._views.capture()
            for name, (policy, period) in names().items():
                if policy in ("immediate", "ipda"):
                    cost[policy, period] += counted(lambda v=name: self._views.propagate(v))
                if policy in DEFERRED and number % period == 0:
                    cost[policy, period] += counted(lambda v=name: self._views.refresh_deferred(v))
        # every refresh of this size costs the same: it is measured once
        whole = counted(self._recompute)
        for period in PERIODS:
            cost[PLAIN, period] = whole * (BATCHES // period)
        return cost

    def check(self) -> None:
        """RuntimeError unless all views show the same."""
        shown = {
            str(self._views.warehouse.query(SAME.format(name)).collect()) for name in names()
        }
        if len(shown) != 1:
            raise RuntimeError(f"views differ: {shown}")

    def _recompute(self) -> None:
        for relation, columns in USED.items():
            role, table = relation.split(".")
            with self._databases.connect(role) as connection:
                self._plain.export(relation, from_postgres(connection, table, columns))
        self._plain.refresh(VIEWS[AGGREGATE])


def counted(step: Callable[[], None]) -> float:
    """CPU-seconds of a step."""
    before = used()
    step()
    return used() - before


def measured(sizes: _Sizes, cache: Path, told: Told) -> list[Cost]:
    """The rounds, after those of warm-up."""
    with ExitStack() as closing:
        folder = Path(closing.enter_context(tempfile.TemporaryDirectory()))
        server = closing.enter_context(postgres(cache))
        databases = tpch.copy_of(template(server, sizes.scale, folder, told), COPIES)
        views = closing.enter_context(by_hand.opened(project(folder / "kept", databases)))
        told("first states")
        views.build()
        bench, found = Bench(views, databases, folder), []
        for number in range(sizes.warm_ups + sizes.rounds):
            told(f"round {number + 1} of {sizes.warm_ups + sizes.rounds}")
            cost = bench.round(sizes.changes)
            if number >= sizes.warm_ups:
                found.append(cost)
        bench.check()
        return found


def findings(rounds: list[Cost], sizes: _Sizes) -> list[Finding]:
    """CPU-seconds for 10,000 changes, and beside plain Spark in the same round."""
    found, scaled = [], 10_000 / sizes.changes
    for policy, period in rounds[0]:
        every = "at once" if policy == "immediate" else f"refreshed every {period} of {BATCHES}"
        title = f"10,000 changes, {policy}, {every}"
        found.append(
            Finding(title, "join + aggregate", CPU, [r[policy, period] * scaled for r in rounds])
        )
        if policy != PLAIN:
            ratios = [r[policy, period] / r[PLAIN, period] for r in rounds]
            found.append(Finding(f"{title}: / {PLAIN}", "join + aggregate", RATIO, ratios))
    return found


_NOTES = f"""
One view over three relations in two PostgreSQL databases, TPC-H SF {{scale:g}}, {{changes:,}}
changes a round in {BATCHES} batches, rounds of warm-up: {{warm}}; figures are for 10,000 changes.
CPU-seconds are those of Python and Java together, counted around each step of each view, with
apply; capture is shared by all, and left out. {PLAIN}: COPY of the used columns, Arrow, Parquet,
then the SELECT in a session with adaptive execution; measured once a round, times the refreshes of
the period. All views showed the same rows in the end.
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.policies")
    parser.add_argument("--smoke", action="store_true", help="very little data, one round")
    sizes = SMOKE if parser.parse_args().smoke else FULL
    with alone() as cache:
        rounds = measured(sizes, cache, teller())
    print("# What changes cost under each policy\n")
    print("\n".join(findings_table(findings(rounds, sizes))))
    notes = _NOTES.format(scale=sizes.scale, changes=sizes.changes, warm=sizes.warm_ups)
    print(notes.rstrip())


if __name__ == "__main__":
    main()
