"""docs/results/papers.md and its annex: what was measured, as tables and diagrams."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from examples.papers.adversary import Alternation, Compensation
from examples.papers.levels import COLUMNS, ROWS, Cell
from examples.papers.messages import (
    ALGORITHMS,
    BATCHES,
    RATES,
    SEEDS,
    SIZES,
    UPDATES,
    Point,
    our_bound,
    printed_bound,
)
from examples.papers.plot import Chart
from steadyview.checking import LEVELS
from steadyview.checking.deferred import PROPERTIES
from steadyview.maintenance.algorithms import BATCHED
from steadyview.simulation.deferred import Convicted

_SHOWN_N, _SHOWN_RATE = 5, 1.0
_PRINTED = {
    "eca": ("one source, strong", "O(1)", "1"),
    "strobe": ("strong", "O(n)", "(n-1)/2: n-1 per insertion, 0 per deletion"),
    "c-strobe": ("complete", "O(n!)", "0 per deletion; see the bound below"),
    "sweep": ("complete", "O(n)", "n-1"),
    "nested-sweep": ("strong", "O(n)", "at most n-1"),
    BATCHED: ("complete (ours)", "", "at most 2(n-1) per batch"),
}
"""Table 1: level and cost as printed; what we expect of a stream of which half are insertions."""


@dataclass(frozen=True)
class Findings:
    """All that was measured."""

    cells: Sequence[Cell]
    points: Sequence[Point]
    attacks: Mapping[int, Compensation]
    alternations: Mapping[tuple[str, int], Alternation]
    batches: Mapping[tuple[int, int], float]
    diagrams: Mapping[tuple[str, str], str]
    """By algorithm and column, the shrunk history that shows why it reaches no more."""
    terms: Mapping[tuple[int, int], int]
    """By relations and open queries, the joins in ECA's next query."""
    deferred: Sequence[Convicted]
    """Of each way of applying a view delta, the histories that break each property."""

    def point(self, algorithm: str, n: int, rate: float) -> Point:
        """One of the points."""
        return next(p for p in self.points if (p.algorithm, p.n, p.rate) == (algorithm, n, rate))


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Markdown, numbers to the right of the first column."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def page(found: Findings) -> str:
    """The whole page."""
    sections = (_levels, _counted, _messages, _rates, _bound, _eca, _nested, _batched, _deferred)
    return "\n\n".join([_HEAD, *(section(found) for section in sections), _DIFFERENCES]) + "\n"


def counter_histories(found: Findings) -> str:
    """The second page: a diagram for every cell below complete."""
    parts = [_COUNTER_HEAD]
    for (algorithm, column), text in found.diagrams.items():
        parts.append(f"## {algorithm}, {column}\n\n```\n{text.rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


def charts(found: Findings) -> dict[str, Chart]:
    """The pictures, by file name."""
    by_rate = {
        name: [(rate, found.point(name, _SHOWN_N, rate).lookups_per_update) for rate in RATES]
        for name in ALGORITHMS
    }
    by_n = {
        name: [(n, found.point(name, n, _SHOWN_RATE).lookups_per_update) for n in SIZES]
        for name in ALGORITHMS
    }
    by_batch = {f"n = {n}": [(size, found.batches[n, size]) for size in BATCHES] for n in SIZES}
    up = "lookups per update"
    return {
        "papers-rate.svg": Chart(
            f"Lookups by update rate, {_SHOWN_N} relations", "updates per round trip", up, by_rate
        ),
        "papers-relations.svg": Chart(
            "Lookups by number of relations, one update per round trip", "relations", up, by_n
        ),
        "papers-batch.svg": Chart(
            "Batched sweep: lookups by batch size", "updates in a batch", up, by_batch
        ),
    }


_HEAD = """# The papers, measured

Written by `make papers`; a second run writes the same. The algorithms are the product's own state
machines, run in the simulator (sources, channels and schedules in memory) and judged by the
checker, which knows nothing of them. The examples of the papers, step by step, are the scripts in
`tests/papers/examples/` and `tests/papers/deferred/`. What each algorithm is:
[algorithms.md](../algorithms.md). Views kept record by record: [records.md](records.md).

S96: Zhuge, Garcia-Molina, Wiener, *The Strobe Algorithms for Multi-Source Warehouse Consistency*,
PDIS 1996. A97: Agrawal, El Abbadi, Singh, Yurek, *Efficient View Maintenance at Data Warehouses*,
SIGMOD 1997. B: Beyer, Cochrane, Pirahesh, Sidle, Shanmugasundaram, Mohan, Salem, *Immediate
Propagate Deferred Apply for Incremental Maintenance of Materialized Views*, IBM Almaden."""

_COUNTER_HEAD = """# Counter-histories

For every cell of the [table of levels](papers.md) that is below complete: a history of that cell
that does not reach the next level, made as small as possible. Time runs downward; rows are written
with their counts. Written by `make papers`."""

_DIFFERENCES = """## Where print and measurement differ

- C-Strobe, grouped by relation: S96 prints at most (n-1)! compensating queries for an insertion.
  Level k of the recursion has up to (n-1)!/(n-1-k)! of them, and all levels count: 2, 9, 40, 205
  for n = 3 to 6. All of these are reached.
- ECA: A97 calls the size of its queries quadratic in the number of interfering updates. That is the
  case of four relations; in general it grows with the power n-2 where terms are not merged.
- T-Strobe with global transactions: S96's Example 5 holds a part back until the others are there.
  Held parts can be overtaken by later transactions of their source, and then the view does not even
  converge. Each part is handled on arrival here; the example's states are the same.
- G-Strobe: the three printed conditions restrict when the view is changed, not the order of
  processing. Transactions are processed in an order in which none overtakes a part that waits.
- ECA-key: strong as published in 1995. S96 names its error, and the table shows it.
- S96 calls Example 3 strong. It is complete as well, since order between sources is free.
- SWEEP in parallel: the printed merge of left and right sweep squares the counts of the update. One
  of the two starts from its rows at count 1.
- A97, section 5.2: the product of -(2,3) and -(3,7,8) is printed with a minus. It has none, and is
  then subtracted.
- Nested SWEEP under alternating updates: A97 says that it oscillates. It shows no state at all
  until the updates cease, or until it is forced to end.
- Atomic in a view: of the ways that B tells, only write times break it, which B never calls an
  algorithm. Algorithm 1 breaks everything else that B says, and never this."""


def _levels(found: Findings) -> str:
    at = {(cell.algorithm, cell.column): cell for cell in found.cells}
    rows = [[f"`{row}`", *(_cell(at.get((row, column))) for column in COLUMNS)] for row in ROWS]
    least = min(cell.histories for cell in found.cells)
    return f"""## Which algorithm reaches which level (S96, Figure 7.2)

The lowest level of consistency in {least:,} random histories for each of {len(found.cells)} cells.
It is the level promised, unless the cell says otherwise. In brackets: the first seed whose history
does not reach the next level, so that no more can be promised; the same made small and drawn in
[counter-histories](papers-counter-histories.md). A dash: not made for that scenario. ECA and
ECA-key have one source in every column.

{table(["", *COLUMNS], rows)}"""


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return "-"
    promised = "" if cell.worst == cell.promised else f" **but {cell.promised} promised**"
    unknown = f" ({cell.unknown} unknown)" if cell.unknown else ""
    return f"{cell.worst}" + ("" if cell.seed is None else f" ({cell.seed})") + promised + unknown


def _counted(found: Findings) -> str:
    rows = [
        [f"`{cell.algorithm}`, {cell.column}", *(cell.levels.get(level, 0) for level in LEVELS)]
        for cell in found.cells
    ]
    return f"""<details><summary>Histories by the highest level they reached</summary>

{table(["", *LEVELS], rows)}

</details>"""


def _messages(found: Findings) -> str:
    rows = []
    for name, (level, cost, expected) in _PRINTED.items():
        measured = [found.point(name, n, _SHOWN_RATE).lookups_per_update for n in SIZES]
        rows.append([f"`{name}`", level, cost, expected, *(f"{value:.2f}" for value in measured)])
    head = ["", "level", "printed", "expected here", *(f"n = {n}" for n in SIZES)]
    return f"""## Messages per update (A97, Table 1)

A lookup is one query message to one source; answers are not counted. A number is of {len(SEEDS)}
streams of {UPDATES} single updates each, about half of them insertions, over a chain of n relations
at n sources in which every join finds rows. Time is counted in round trips of a query. The *rate*
is the number of updates in one round trip: so many overtake a query. Here it is {_SHOWN_RATE:g}.

{table(head, rows)}

![lookups by number of relations](papers-relations.svg)"""


def _rates(found: Findings) -> str:
    tables = []
    for n in SIZES:
        rows = [
            [f"`{a}`", *(f"{found.point(a, n, rate).lookups_per_update:.2f}" for rate in RATES)]
            for a in ALGORITHMS
        ]
        tables.append(table([f"n = {n}, updates per round trip", *_rate_heads()], rows))
    return "\n\n".join([_BY_RATE, "![lookups by update rate](papers-rate.svg)", *tables])


_BY_RATE = """### By update rate

SWEEP, Strobe and ECA do not care. Nested SWEEP, recomputation and the batched sweep share their
lookups among the updates that came meanwhile; C-Strobe pays for deletions that overtake a query.
Where updates come faster than an algorithm works, they wait in its queue."""


def _rate_heads() -> list[str]:
    return [f"{rate:g}" for rate in RATES]


def _bound(found: Findings) -> str:
    rows = []
    for n, attack in found.attacks.items():
        streams = [p for p in found.points if (p.algorithm, p.n) == ("c-strobe", n)]
        seen = max(point.most("compensating") for point in streams)
        rows.append([n, printed_bound(n), our_bound(n), attack.queries, seen, attack.lookups])
    head = ["n", "printed (n-1)!", "our bound", "reached", "in the streams above", "lookups"]
    return f"""### C-Strobe's bound (S96, section 6)

Compensating queries for one insertion, grouped by relation. *Reached*: by an adversary that deletes
a row of every other relation before each answer; beside it the lookups of that insertion.

{table(head, rows)}"""


def _eca(found: Findings) -> str:
    opened = sorted({k for _, k in found.terms})
    rows = [[f"n = {n}", *(found.terms[n, k] for k in opened)] for n in SIZES]
    return f"""### The size of ECA's queries (A97, Table 1)

One lookup per update, but it carries the compensation of all queries that are open: the joins in
one query, by the number of open ones; the relations are updated in turn.

{table(["open queries", *map(str, opened)], rows)}"""


def _nested(found: Findings) -> str:
    rows = []
    for name in ("nested-sweep", "nested-sweep:3"):
        points = [found.point(name, 3, rate) for rate in RATES]
        installs = [f"{p.installs_per_update:.2f}" for p in points]
        rows.append([f"`{name}`, installs per update", *installs])
        rows.append([f"`{name}`, deepest recursion", *(p.most("depth") for p in points)])
    duel = [
        [f"`{name}`, n = {n}", a.updates, a.installs_meanwhile, a.installs, a.depth, a.lookups]
        for (name, n), a in found.alternations.items()
    ]
    head = ["", "updates", "installs meanwhile", "installs in all", "depth", "lookups"]
    return f"""## Nested SWEEP: recursion and forced termination (A97, section 6)

Streams as above, n = 3. `nested-sweep:3` is forced to end after three absorbed updates.

{table(["updates per round trip", *_rate_heads()], rows)}

Two sources that interfere in turn: whichever of the two is asked is updated before it answers.
Without a limit the recursion goes deeper with every update, and the view does not change until the
updates cease.

{table(head, duel)}"""


def _batched(found: Findings) -> str:
    rows = [
        [f"n = {n}", *(f"{found.batches[n, s]:.2f} / {2 * (n - 1) / s:.2f}" for s in BATCHES)]
        for n in SIZES
    ]
    return f"""## Our batched sweep: lookups per update by batch size

Measured / the bound, 2(n-1) divided by the size. A small batch that changes few of the relations
needs fewer. Freezing a state per source and batch is not counted: it reads no rows.

{table(["updates in a batch", *map(str, BATCHES)], rows)}

![lookups by batch size](papers-batch.svg)"""


def _deferred(found: Findings) -> str:
    head = ["", "histories", *PROPERTIES]
    rows = [
        [f"`{row.way}`", row.histories, *(row.broken.get(p, 0) for p in PROPERTIES)]
        for row in found.deferred
    ]
    seen = [
        f"- `{row.way}`, {name} ({row.first[name]}): {row.example[name]}."
        for row in found.deferred
        for name in PROPERTIES
        if name in row.broken
    ]
    return f"""## Deferred views: which records an apply step takes (B, sections 3 and 4)

How many random histories break each of the six properties. In a history three to six transactions
run over three views, up to three at once, and are suspended between any two requests to the
database; meanwhile each view is rolled to this time and that, in the end to one beyond all commits.
What each way is: [algorithms.md](../algorithms.md#deferred-views).

{table(head, rows)}

<details><summary>The first history of each (its seed), and what it shows</summary>

{chr(10).join(seen)}

</details>"""
