"""docs/results/records.md and its pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from examples.papers.page import table
from examples.papers.plot import Chart
from examples.records.figures import (
    CARDINALITIES,
    DISTRIBUTIONS,
    DIVISORS,
    LONGER_BY,
    MANAGERS,
    Figure,
)
from examples.records.levels import AT_EDGES, EDGES, RESTORES, LevelCell, cells
from steadyview.simulation.records import COLUMNS
from steadyview.simulation.records.ways import VIEWS

CLAIMS = {
    "COUNT": "strong (Theorem 1)",
    "SUM": "strong",
    "AVG": "strong",
    "projection": "strong",
    "UNION": "strong",
    "INTERSECT": "strong",
    "EXCEPT": "strong",
    "selection": "strong, no TAS",
    "key projection": "strong, no TAS",
    "MIN as printed": "weak (Theorem 2)",
    "MIN always scan": "strong",
    "MIN reference counts as printed": "none made",
    "join as printed": "weak (Theorem 3)",
}
Cells = Mapping[tuple[str, str, str], LevelCell]


@dataclass(frozen=True)
class RecordFindings:
    """All that was measured; `histories` in each cell."""

    histories: int
    cells: Cells
    figures: Sequence[Figure]
    drawings: Mapping[tuple[str, str], str]
    """By row and column, a failing history made small."""

    @property
    def missing(self) -> set[tuple[str, str, str]]:
        """Cells that were not measured."""
        return set(cells()) - set(self.cells)

    def lost(self, name: str, row: str, column: str) -> str:
        """A cell of a table."""
        cell = self.cells.get((name, row, column))
        if cell is None:
            return "?" if (name, row, column) in self.missing else "-"
        return "/".join(map(str, cell.seen.lost)) if any(cell.seen.lost) else "0"

    def of(self, number: str, line: str) -> list[Figure]:
        """A line of a figure."""
        return [f for f in self.figures if (f.number, f.line) == (number, line)]


def page(found: RecordFindings) -> str:
    """The whole page."""
    sections = (_printed, _mended, _edges, _restored, _sentences, _sums, _minima, _flow)
    head = _HEAD.replace("HISTORIES", f"{found.histories:,}")
    return "\n\n".join([head, *(section(found) for section in sections)]) + "\n"


_HEAD = """# Records, measured

Written by `make records`; a second run writes the same. J: Jacobsen, Lee, Yerneni, *View
Maintenance in Web Data Platforms*. The update programs are those of
`src/steadyview/maintenance/records`, run in the simulator and judged by a checker that knows
nothing of them. The paper's examples, step by step, are the scripts in `tests/papers/records/`;
what each way is: [algorithms.md](../algorithms.md#records).

## Levels: view class, technique, fault (J, sections III to V)

**a/b/c**: of HISTORIES random histories, those *not convergent / convergent only / weak only*; 0:
all strong. In a history up to seven changes are made to three or four base records in one to three
log streams; one to three managers run, one of them mostly held still between two requests. *Crash*:
a manager dies before or after its request was done. *Window*: the same, positions registered every
few entries. *Late*: a request comes after its manager gave up and did the entry again. *Two
copies*: a second manager goes on behind what is registered while the first lives. *Mixed*: all of
them. A small number says no more than that something can happen: a 0 beside a 1 is
chance, not a cure. A dash: there is no such way. A question mark: not measured in the time there
was."""


def counter_histories(found: RecordFindings) -> str:
    """The second page: a small history for every printed form that fails."""
    parts = [_COUNTER_HEAD]
    for (row, column), text in found.drawings.items():
        parts.append(f"## {row}, {column}\n\n```\n{text}\n```")
    return "\n\n".join(parts) + "\n"


_COUNTER_HEAD = """# Records: histories that fail, made small

Written by `make records`: for each way and fault of [the table](records.md) the first history with
the lowest level, with changes left out and schedules tried anew. Of a record its fields are shown,
hidden ones too, then its version: `{s0:2}` says that entry 2 of stream s0 is in; `gone` that
nothing is left, its signature neither."""


def _levels(found: RecordFindings, names: Sequence[str], head: Sequence[str]) -> str:
    rows = [
        [view, *(found.lost("levels", view, name) for name in names)]
        for view in VIEWS
        if any(("levels", view, name) in found.cells for name in names)
    ]
    return table(["", *head], rows)


def _printed(found: RecordFindings) -> str:
    names = [column.name for column in COLUMNS[:6]]
    rows = [
        [view, CLAIMS[view], *(found.lost("levels", view, name) for name in names)]
        for view in VIEWS
        if view in CLAIMS
    ]
    return f"""### As printed

*Counter* and *signature*: cnt-TAS and sig-TAS, the deleted record gone with its version.

{table(["", "the paper's claim", *names], rows)}"""


def _mended(found: RecordFindings) -> str:
    names = [column.name for column in COLUMNS[6:]]
    return f"""### Ours

Signatures with tombstones that are reclaimed under the floor. The printed forms of MIN have the
mark here, and no more. The last two columns leave the flow rule out: entries go to any manager; or
only those of one base record to one manager, as the paper's rule says.

{_levels(found, names, [name.removeprefix("ours, ") for name in names])}"""


def _edges(found: RecordFindings) -> str:
    rows = dict.fromkeys(row for name, row, _ in cells() if name == "edges")
    body = [[row, *(found.lost("edges", row, name) for name in EDGES)] for row in rows]
    return f"""### Reads that lag, streams that are cut anew, entries together

*Reads that lag*: a scan, or a read of S, is up to two changes old, and says so. *New streams*:
once, the log is partitioned anew and other managers go on; *stale managers*: those before them do
too. *Three together*: a group commit of three entries. *Three at once*: entries of other records do
not wait. All with crashes and windows, the last two mixed; {_edge_histories(found)} histories in
each.

{table(["", *EDGES], body)}"""


def _edge_histories(found: RecordFindings) -> str:
    return f"{min(found.histories, AT_EDGES):,}"


def _restored(found: RecordFindings) -> str:
    rows = dict.fromkeys(row for name, row, _ in cells() if name == "restored")
    body = []
    for row in rows:
        lost = [found.lost("restored", row, name).partition("/")[0] for name in RESTORES]
        body.append([row, *lost])
    return f"""### A store that becomes what it was

Once, the store loses its last writes or a backup is restored, and all managers begin anew.
Of {_edge_histories(found)} histories, those with a wrong end. *At once*: records and positions of
one moment. While a copy is made
that is not of one moment, no tombstone is reclaimed.

{table(["", *RESTORES], body)}"""


def _sentences(found: RecordFindings) -> str:
    lines = []
    pairs = weak = 0
    for (name, row, column), cell in found.cells.items():
        if name != "levels":
            continue
        if row.startswith("MIN"):
            pairs, weak = pairs + cell.seen.pairwise, weak + cell.seen.lost[2]
        for level in ("none", "convergent", "weak"):
            if level in cell.seen.example:
                seed = cell.seen.first[level]
                lines.append(f"- {row}, {column} ({seed}): {cell.seen.example[level]}.")
    pairwise = f"{pairs:,} are strong as printed, pair by pair"
    return f"""Of {weak:,} histories of MIN that are only weak, {pairwise}.

<details><summary>The first history of each (its seed), and what it showed</summary>

{chr(10).join(lines)}

</details>"""


def _numbers(found: RecordFindings, number: str, lines: Sequence[str], what: str) -> str:
    rows = []
    for line in lines:
        points = found.of(number, line)
        rows.append([line, *(round(getattr(point.found, what)) for point in points)])
    managers = DIVISORS if number == "8" else MANAGERS
    return table([f"{what} per second, by managers", *map(str, managers)], rows)


def _sums(found: RecordFindings) -> str:
    lines = [f"cardinality {n}" for n in CARDINALITIES]
    return f"""## Figures 2, 3, 5, 6: SUM by number of managers (J, section VI)

Queues with stated times: an operation takes 1 ms for both ways and 1 ms of service at one of 20
units, one at a time. 100,000 base records, 10 log streams. The shape is compared, not the number.
The paper: throughput rises until contention is about 750 per second, and falls then; with thousands
of records there is hardly any contention.

{_numbers(found, "2, 3", lines, "updates")}

{_numbers(found, "2, 3", lines, "contentions")}

![SUM, throughput](records-sum.svg)

![SUM, contention](records-contention.svg)

With signatures the paper loses about 9 %. Here an operation is {LONGER_BY} ms longer, which *puts
that cost in*; that nothing else changes is what is seen. What a signature costs on a live store is
measured there.

{_numbers(found, "5, 6", lines, "updates")}

{_numbers(found, "5, 6", lines, "contentions")}"""


def _minima(found: RecordFindings) -> str:
    return f"""## Figures 4 and 7: MIN, without and with reference counts

1,000 groups of 100 rows; a scan takes 2 ms on every unit. The paper: no difference between uniform
and normal, more managers soon of no use for Zipf without counts; with counts all three scale, Zipf
below the others; at most 24 contentions per second.

Without:

{_numbers(found, "4", DISTRIBUTIONS, "updates")}

With:

{_numbers(found, "7", DISTRIBUTIONS, "updates")}

The most contentions per second in either: {_most(found, ("4", "7"))}.

![MIN](records-minimum.svg)"""


def _flow(found: RecordFindings) -> str:
    lines = ("balanced", "unbalanced")
    return f"""## Figure 8: flow control, balanced and unbalanced

20 streams; unbalanced, the first has nine times the updates of the last. The paper: balanced is
near linear, unbalanced levels off at about 1,500 per second with less contention, both below 74.
The level is the rate of one manager divided by the share of the fullest stream.

{_numbers(found, "8", lines, "updates")}

{_numbers(found, "8", lines, "contentions")}

![flow control](records-flow.svg)"""


def _most(found: RecordFindings, numbers: Sequence[str]) -> int:
    return round(max(f.found.contentions for f in found.figures if f.number in numbers))


def charts(found: RecordFindings) -> dict[str, Chart]:
    """The pictures, by file."""
    sums = [f"cardinality {n}" for n in CARDINALITIES]
    rate: Callable[[Figure], float] = lambda point: point.found.updates  # noqa: E731
    tests: Callable[[Figure], float] = lambda point: point.found.contentions  # noqa: E731
    minima = {f"{d}{c}": (n, d) for n, c in (("4", ""), ("7", ", counts")) for d in DISTRIBUTIONS}
    flow = {name: ("8", name) for name in ("balanced", "unbalanced")}
    by_line = {line: ("2, 3", line) for line in sums}
    return {
        "records-sum.svg": _chart(found, "SUM, cnt-TAS (Figure 2)", "updates/s", by_line, rate),
        "records-contention.svg": _chart(
            found, "SUM, cnt-TAS (Figure 3)", "failed tests/s", by_line, tests
        ),
        "records-minimum.svg": _chart(found, "MIN (Figures 4, 7)", "updates/s", minima, rate),
        "records-flow.svg": _chart(found, "SUM, flow rule (Figure 8)", "updates/s", flow, rate),
    }


def _chart(
    found: RecordFindings,
    title: str,
    up: str,
    lines: Mapping[str, tuple[str, str]],
    value: Callable[[Figure], float],
) -> Chart:
    """Without points at zero, which a logarithm does not show."""
    points = {
        name: [(float(f.managers), value(f)) for f in found.of(*line) if value(f) >= 1]
        for name, line in lines.items()
    }
    return Chart(title, "view managers", up, points)
