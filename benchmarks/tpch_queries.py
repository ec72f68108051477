"""The 22 queries of TPC-H as views over three databases: a refresh against a full one.

    python -m benchmarks.tpch_queries [--smoke] [--scale 0.1]

orders and lineitem lie in one PostgreSQL database, customer, nation and region in another, part,
supplier and partsupp in a SQLite file. All queries that can be kept are views of one project. A
round changes a share of all rows and then refreshes one view after the other, each in a batch of
its own. In the end every view is compared, row by row, with what Spark alone makes of TPC-H's own
text over files that the databases exported themselves: a fast wrong answer would show.
"""

from __future__ import annotations

import argparse
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import steadyview
from benchmarks import by_hand, stock, tpch
from benchmarks.by_hand import ByHand
from benchmarks.place import COPIES, RESULTS, Told, alone, postgres, teller
from benchmarks.plain_spark import PlainSpark, from_postgres, from_sqlite
from benchmarks.report import table
from benchmarks.site import template
from benchmarks.tpch_texts import QUERIES
from benchmarks.workload import Workload
from steadyview.runtime.checks import ViewCheck

ROWS = 8_660_000
"""Rows of all tables at scale factor 1."""
SHARES = (0.001, 0.01)
POSTGRES = {"sales": ("orders", "lineitem"), "crm": ("customer", "nation", "region")}
_PROJECT = """[project]
name = "tpch"
warehouse = "warehouse"

[sources.sales]
type = "postgresql"
url = "{sales}"
slot = "{slot}_sales"
tables = ["public.orders", "public.lineitem"]

[sources.crm]
type = "postgresql"
url = "{crm}"
slot = "{slot}_crm"
tables = ["public.customer", "public.nation", "public.region"]

[sources.stock]
type = "sqlite"
path = "{stock}"
tables = ["part", "supplier", "partsupp"]
"""


@dataclass(frozen=True)
class _Sizes:
    scale: float
    warm_ups: int
    rounds: int


FULL, SMOKE = _Sizes(0.1, 1, 3), _Sizes(0.01, 0, 1)


@dataclass
class Measured:
    """What was found out about one view."""

    refresh: dict[float, list[float]] = field(default_factory=lambda: {s: [] for s in SHARES})
    recompute: float = 0.0
    plain: float = 0.0
    rows: int = 0
    equal: bool = False
    failed: str = ""


@dataclass
class Found:
    """The whole run."""

    views: dict[str, Measured]
    refused: dict[str, str]
    """Views that cannot be kept at all, and why."""
    reasons: dict[str, str]
    """Why TPC-H's own text is refused, where another one is kept."""
    together: dict[float, float] = field(default_factory=dict)
    """All views in one batch; seconds."""
    built: float = 0.0
    exported: float = 0.0


class Databases:
    """The three databases and the changes made to them."""

    def __init__(self, loaded: tpch.Databases, cache: Path, folder: Path) -> None:
        self.scale = loaded.scale
        self.postgres = tpch.copy_of(loaded, COPIES)
        self.stock = stock.copied(cache, self.scale, folder / "stock.db")
        self._work, self._stock_work = Workload(self.postgres), stock.StockWork(self.stock)
        self._work.prepare()

    def project(self, folder: Path, texts: dict[str, str]) -> Path:
        """A project with these views."""
        (folder / "views").mkdir(parents=True)
        urls = {role: self.postgres.url(role) for role in POSTGRES}
        slot = self.postgres.name("tpch")
        text = _PROJECT.format(slot=slot, stock=self.stock, **urls)
        (folder / "steadyview.toml").write_text(text)
        for name, select in texts.items():
            (folder / "views" / f"{name}.sql").write_text(select)
        return folder

    def change(self, share: float) -> int:
        """Change a share of all rows; how many that were."""
        wanted = max(round(ROWS * self.scale * share), 20)
        here = round(wanted * stock.SHARE)
        return self._work.mixed(wanted - here) + self._stock_work.mixed(here)

    def index(self, source: str, of_table: str, column: str) -> None:
        """Create an index."""
        if source in POSTGRES:
            tpch.index(self.postgres, source, of_table, column)
            return
        with closing(sqlite3.connect(self.stock, timeout=60)) as connection, connection:
            name = f"{of_table}_{column}"
            connection.execute(f"CREATE INDEX IF NOT EXISTS {name} ON {of_table} ({column})")

    def export(self, plain: PlainSpark) -> float:
        """All relations as Parquet files; seconds."""
        took = 0.0
        for role, tables in POSTGRES.items():
            with self.postgres.connect(role) as connection:
                for each in tables:
                    found = connection.execute(f"SELECT * FROM {each} LIMIT 0").description or ()
                    rows = from_postgres(connection, each, [c.name for c in found])
                    took += plain.export(f"{role}.{each}", rows)
        for each, types in stock.TABLES.items():
            took += plain.export(f"stock.{each}", from_sqlite(self.stock, each, types))
        return took


def measured(sizes: _Sizes, cache: Path, told: Told) -> Found:
    """Load, build, change and refresh, compute anew, compare."""
    with ExitStack() as closing_all:
        folder = cache / "run"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        closing_all.callback(shutil.rmtree, folder, ignore_errors=True)
        server = closing_all.enter_context(postgres(cache))
        told("databases loaded and copied")
        databases = Databases(template(server, sizes.scale, folder, told), cache, folder)
        texts = {name: q.view(sizes.scale) for name, q in QUERIES.items()}
        project = databases.project(folder / "kept", texts)
        told("indexes that explain asks for")
        for wanted in indexes_wanted(project):
            databases.index(*wanted)
        told("planning")
        reasons = refused_texts(databases, folder / "asked")
        views = closing_all.enter_context(by_hand.opened(project))
        found = Found({v: Measured() for v in views.views}, _why(views), reasons)
        told("first states")
        found.built = views.build()
        for share in SHARES:
            _rounds(found, views, databases, share, sizes, told)
        plain = PlainSpark(views.parts.spark, folder / "plain")
        told("relations exported to Parquet")
        found.exported = databases.export(plain)
        for name, view in _going(found):
            told(f"{name}: computed anew")
            _anew(view, name, views, plain, sizes)
        return found


def indexes_wanted(project: Path) -> list[tuple[str, str, str]]:
    """What `explain` asks for, over all views that can be kept."""
    with steadyview.open(project) as warehouse:
        kept = [c.name for c in warehouse.check() if c.verdict == "incremental"]
        wanted = [w for v in kept for w in warehouse.explain(v).to_dict()["indexes_wanted"]]
    return sorted({(w["source"], w["table"], w["column"]) for w in wanted})


def refused_texts(databases: Databases, folder: Path) -> dict[str, str]:
    """The reason codes of TPC-H's own texts where another text is kept."""
    texts = {n: q.query(databases.scale) for n, q in QUERIES.items() if q.kept}
    with steadyview.open(databases.project(folder, texts)) as warehouse:
        checks = [c for c in warehouse.check() if isinstance(c, ViewCheck)]
    return {c.name: c.code or c.verdict for c in checks}


def _why(views: ByHand) -> dict[str, str]:
    return {name: f"{error.code}: {error.message}" for name, error in views.refused.items()}


def _rounds(
    found: Found, views: ByHand, databases: Databases, share: float, sizes: _Sizes, told: Told
) -> None:
    """Refresh the views one by one after a change, some times; then all of them in one batch."""
    for number in range(sizes.warm_ups + sizes.rounds):
        told(f"{_percent(share)} changed: round {number + 1} of {sizes.warm_ups + sizes.rounds}")
        databases.change(share)
        views.capture()
        for name, view in _going(found):
            took = _refreshed(views, name, view)
            if number >= sizes.warm_ups and not view.failed:
                view.refresh[share].append(took)
    for _ in range(sizes.warm_ups + 1):
        told(f"{_percent(share)} changed: all views in one batch")
        databases.change(share)
        views.capture()
        if not any(view.failed for view in found.views.values()):
            found.together[share] = views.refresh_all()
            continue
        for name, view in _going(found):
            _refreshed(views, name, view)


def _refreshed(views: ByHand, name: str, view: Measured) -> float:
    """Seconds of a refresh, and of apply where it is due."""
    try:
        return views.refresh(name) + views.apply_if_due(name)
    except RuntimeError as error:
        view.failed = str(error)
        return 0.0


def _going(found: Found) -> Iterator[tuple[str, Measured]]:
    for name, view in found.views.items():
        if not view.failed:
            yield name, view


def _anew(view: Measured, name: str, views: ByHand, plain: PlainSpark, sizes: _Sizes) -> None:
    """Compare a view with what Spark alone makes of it, and compute it anew in both ways."""
    text = QUERIES[name].query(sizes.scale)
    expected = Counter(map(tuple, plain.rows(text).collect()))
    shown = Counter(map(tuple, views.warehouse.view(name).read().collect()))
    view.equal, view.rows = shown == expected, sum(shown.values())
    for _ in range(sizes.warm_ups + 1):
        view.plain, view.recompute = plain.refresh(text), views.recompute(name)


def _percent(share: float) -> str:
    return f"{share * 100:g} %"


def page(found: Found, sizes: _Sizes) -> str:
    """The results as Markdown."""
    head = ["query", "rows"]
    for share in SHARES:
        head += [f"{_percent(share)}: refresh", "recompute", "Spark alone"]
    head += ["recompute", "Spark alone", "rows"]
    lines = [f"# TPC-H's queries over three databases, SF {sizes.scale:g}", "", _NOTES.strip(), ""]
    lines += table(head, [_cells(name, view) for name, view in _going(found)])
    lines += ["", *_sums(found), *_lists(found)]
    return "\n".join(lines)


def _cells(name: str, view: Measured) -> list[str]:
    cells = [f"{name}{' *' if QUERIES[name].kept else ''}", f"{view.rows:,}"]
    for share in SHARES:
        took = median(view.refresh[share])
        cells += [f"{took:.2f} s", f"{view.recompute / took:.1f}x", f"{view.plain / took:.1f}x"]
    equal = "equal" if view.equal else "**differ**"
    return [*cells, f"{view.recompute:.2f} s", f"{view.plain:.2f} s", equal]


def _sums(found: Found) -> list[str]:
    going = [view for _, view in _going(found)]
    built = f"First states of all: {found.built:.0f} s."
    exported = f"Export of all relations, not counted in *Spark alone*: {found.exported:.1f} s."
    together = [
        f"All views in one batch, {_percent(share)} changed: {took:.1f} s; one by one "
        f"{sum(median(v.refresh[share]) for v in going):.1f} s."
        for share, took in found.together.items()
    ]
    return [built, exported, *together]


def _lists(found: Found) -> list[str]:
    """Which were written otherwise and why, refused, or stopped."""
    lines = []
    for name, query in QUERIES.items():
        if query.kept:
            reason = found.reasons.get(name, "-")
            lines.append(f"- {name} *: {query.rewrite} (TPC-H's own text: {reason})")
    lines += [f"- {name}: refused, {why}" for name, why in found.refused.items()]
    lines += [f"- {n}: stopped, {v.failed}" for n, v in found.views.items() if v.failed]
    return ["", *lines] if lines else []


_NOTES = """
`make bench-tpch`. orders and lineitem in one PostgreSQL database, customer, nation and region in
another, part, supplier and partsupp in SQLite. A share of all rows is inserted, updated or deleted,
in proportion to the tables' sizes, in transactions of an order with its lines, a customer, or a
part with its offers. *Refresh* is from freezing the sources to publication, with apply where it
was due; medians. *Recompute* reads the columns used from the sources, runs the text and writes;
*Spark alone* reads Parquet files that were exported before, runs TPC-H's text, writes Parquet. The
columns behind a refresh say how many times as long each of the two took. *Rows*: what the view
shows after all changes against TPC-H's text over the exported files. ORDER BY and LIMIT are left
out of all; * marks queries whose view was written otherwise.
"""


def main() -> None:
    """Measure, print; a full run's page is kept."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tpch_queries")
    parser.add_argument("--smoke", action="store_true", help="SF 0.01, one round")
    sizes = SMOKE if parser.parse_args().smoke else FULL
    with alone() as cache:
        text = page(measured(sizes, cache, teller()), sizes)
    print(text)
    if sizes is FULL:
        (RESULTS / "tpch-queries.md").write_text(text + "\n")


if __name__ == "__main__":
    main()
