"""Twenty deferred views refreshed together, and one after the other.

    python -m benchmarks.together [--smoke]

The views of `many_views` with the policy dpda, over its two SQLite files. A round commits a
thousand changes and refreshes all views by one call, then a thousand more and refreshes them by a
call each; which way is first alternates. Ends with `verify` of all views.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import steadyview
from benchmarks.findings import RATIO, SECONDS, Finding
from benchmarks.many_views import CHANGES, PROJECT, Shop, views
from benchmarks.place import Told, teller
from benchmarks.report import findings_table
from steadyview.runtime.warehouse import Warehouse

VIEWS = 20
TOGETHER, APART = "one refresh of all", "a refresh of each"
Taken = dict[str, list[float]]


def project(folder: Path, many: int) -> list[str]:
    """The views' names."""
    (folder / "steadyview.toml").write_text(PROJECT)
    (folder / "views").mkdir()
    for name, text in views(many).items():
        create = f"CREATE MATERIALIZED VIEW {name} TBLPROPERTIES ('steadyview.policy' = 'dpda') AS "
        (folder / "views" / f"{name}.sql").write_text(create + text)
    return list(views(many))


def refreshed(warehouse: Warehouse, names: list[str], way: str) -> float:
    """Seconds until all of them show what is committed."""
    begun = time.perf_counter()
    for some in [names] if way == TOGETHER else [[name] for name in names]:
        warehouse.refresh(some)
    return time.perf_counter() - begun


def measured(
    warehouse: Warehouse, shop: Shop, names: list[str], rounds: int, warm_ups: int, told: Told
) -> Taken:
    """Seconds of each way, in rounds."""
    taken: Taken = {TOGETHER: [], APART: []}
    for number in range(warm_ups + rounds):
        for way in (TOGETHER, APART)[:: 1 if number % 2 else -1]:
            shop.change()
            # captured by then: a refresh computes, and does not wait for capture
            warehouse.run_once()
            seconds = refreshed(warehouse, names, way)
            told(f"{'warm-up' if number < warm_ups else 'round'}, {way}: {seconds:.2f} s")
            if number >= warm_ups:
                taken[way].append(seconds)
    return taken


def findings(taken: Taken, many: int) -> list[Finding]:
    """The ratio of each round, then seconds."""
    ratios = [a / b for a, b in zip(taken[TOGETHER], taken[APART], strict=True)]
    what, each = f"{CHANGES:,} changes", f"{many} views"
    return [
        Finding(f"{what}: {TOGETHER} / {APART}", each, RATIO, ratios),
        *(Finding(f"{what}: {way}", each, SECONDS, seconds) for way, seconds in taken.items()),
    ]


def main() -> None:
    """Measure, print, verify."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.together")
    parser.add_argument("--smoke", action="store_true", help="four views, one round")
    asked = parser.parse_args()
    many, rounds, warm_ups = (4, 1, 0) if asked.smoke else (VIEWS, 5, 2)
    told = teller()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        shop, names = Shop(folder), project(folder, many)
        with steadyview.open(folder) as warehouse:
            told("first states")
            warehouse.run_once()
            taken = measured(warehouse, shop, names, rounds, warm_ups, told)
            wrong = [v.view for v in warehouse.verify() if not v.equal]
    print(f"# {many} views refreshed together\n")
    print("\n".join(findings_table(findings(taken, many))))
    print(
        f"\nThe views of many-views.md with the policy `dpda`. Each refresh from call to answer,"
        f" without a `run`.\nVerified in the end: {len(wrong)} of {many} views differ."
    )


if __name__ == "__main__":
    main()
