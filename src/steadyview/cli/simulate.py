"""`steadyview simulate`."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from steadyview.cli.files import check_writable, write
from steadyview.cli.options import DebugOption, JsonOption
from steadyview.cli.reporting import ExitCode, reporting
from steadyview.cli.tables import console, note, print_json, show, table
from steadyview.errors import ConfigError

if TYPE_CHECKING:
    from steadyview.maintenance.algorithms import Kind
    from steadyview.simulation import Counterexample, Measured, Sizes

_HEADINGS = (
    "algorithm",
    "scenario",
    "histories",
    "promised",
    "worst",
    "violations",
    "unknown",
    "messages",
    "max",
)
_SEEDS_LISTED = 10
_SECONDS_BETWEEN_LINES = 5.0
Advance = Callable[["Measured"], None]


class Scenario(StrEnum):
    """What a transaction may change."""

    single = "single"
    source_local = "source-local"
    global_ = "global"


class Level(StrEnum):
    """What may be required of a history."""

    convergent = "convergent"
    weak = "weak"
    strong = "strong"
    complete = "complete"


def command(  # noqa: PLR0913  one argument for each option
    algorithm: Annotated[
        str, typer.Option(metavar="NAME", help="An algorithm, e.g. strobe or c-t-strobe:3; or all.")
    ],
    scenario: Annotated[
        Scenario | None, typer.Option(help="Which transactions; every kind of them if none.")
    ] = None,
    seeds: Annotated[
        str, typer.Option(metavar="A..B", help="One history for every number from A to B.")
    ] = "1..1000",
    relations: Annotated[
        int | None, typer.Option(min=2, max=5, metavar="N", help="Occurrences in FROM; 2 to 5.")
    ] = None,
    level: Annotated[
        Level | None, typer.Option(help="Require this level instead of the promised one.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, metavar="N", help="Processes.")] = 1,
    record: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the counterexample's history, else the first."),
    ] = None,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Run an algorithm in invented worlds, seed by seed, and judge the histories of its view.

    A history below the promised level is shrunk and drawn as a space-time diagram.
    Exit code 1 if there is one, or one that is too large to judge.

    [bold]Examples[/]

        steadyview simulate --algorithm batched-sweep

        steadyview simulate --algorithm all --seeds 1..20000 --jobs 4

        steadyview simulate --algorithm strobe --scenario single --level complete
    """
    numbers = parse_seeds(seeds)
    with reporting(as_json=json, debug=debug):
        # Reads SQL, which takes a moment that `--help` should not cost.
        from steadyview.simulation import Sizes

        if record is not None:
            check_writable(record)
        runs = _Runs(_cells(algorithm, scenario), numbers, Sizes(relations), level)
        runs.carry_out(jobs)
        if record is not None:
            write(record, runs.history())
        if json:
            print_json(runs.as_data())
        else:
            runs.show()
        if not all(found.is_kept for found in runs.measured):
            raise typer.Exit(ExitCode.ANSWER_IS_NO)


def parse_seeds(text: str) -> range:
    """The numbers from A to B, both included.

    >>> list(parse_seeds("3..5"))
    [3, 4, 5]
    """
    match = re.fullmatch(r"(\d+)\.\.(\d+)", text, re.ASCII)
    if match is None or int(match[1]) > int(match[2]):
        raise typer.BadParameter(f'"{text}" is no range of seeds such as 1..1000')
    return range(int(match[1]), int(match[2]) + 1)


def _cells(algorithm: str, scenario: str | None) -> list[tuple[Kind, str]]:
    """What to run: every algorithm asked for, in every scenario asked for that it is made for."""
    from steadyview.maintenance.algorithms import KINDS, kind_of

    kinds = list(KINDS.values()) if algorithm == "all" else [kind_of(algorithm)]
    cells = [(k, s) for k in kinds for s in k.promises if scenario in (None, s)]
    if not cells:
        raise ConfigError(
            f'"{algorithm}" is not made for scenario "{scenario}"',
            hint=f"choose one of: {', '.join(kinds[0].promises)}",
        )
    return cells


class _Runs:
    """Every algorithm and scenario over the seeds, and the first thing that went wrong in each."""

    def __init__(
        self, cells: list[tuple[Kind, str]], seeds: range, sizes: Sizes, level: str | None
    ) -> None:
        self._cells, self._seeds, self._sizes, self._level = cells, seeds, sizes, level
        self.measured: list[Measured] = []
        self._counterexamples: list[Counterexample | None] = []

    def carry_out(self, jobs: int) -> None:
        """Measure; shrink the first violation of each."""
        from steadyview.simulation import counterexample, measuring, workers

        with workers(jobs) as mapped, _progress(len(self._cells) * len(self._seeds)) as advance:
            for kind, scenario in self._cells:
                for found in measuring(
                    kind, scenario, self._seeds, self._sizes, required=self._level, mapped=mapped
                ):
                    advance(found)
                self.measured.append(found)
        for (kind, scenario), found in zip(self._cells, self.measured, strict=True):
            first = next(iter(found.violations), None)
            self._counterexamples.append(
                first
                and counterexample(
                    kind, scenario, first[0], below=found.required, sizes=self._sizes
                )
            )

    def history(self) -> str:
        """The history of the first counterexample, or of the first seed."""
        from steadyview.simulation import simulated

        for example in self._counterexamples:
            if example is not None:
                return example.run.history.to_json()
        kind, scenario = self._cells[0]
        return simulated(kind, scenario, self._seeds[0], self._sizes).history.to_json()

    def as_data(self) -> list[dict[str, Any]]:
        """For programs."""
        both = zip(self.measured, self._counterexamples, strict=True)
        return [
            found.to_dict() | {"counterexample": example and example.to_dict()}
            for found, example in both
        ]

    def show(self) -> None:
        """For people."""
        headings = [h if h != "promised" or not self._level else "required" for h in _HEADINGS]
        show(table(headings, map(_row, self.measured)))
        print("messages: queries to sources per update, on average, and the most in one history")
        for found, example in zip(self.measured, self._counterexamples, strict=True):
            if found.unknown:
                print(
                    f"\n{found.algorithm}, {found.scenario}: unknown whether {found.required}: "
                    f"{found.unknown:,} of {found.histories:,} histories, too large to judge"
                )
            if example is not None:
                print(f"\n{found.algorithm}, {found.scenario}: {_listed(found)}\n")
                print(example.text)


def _row(found: Measured) -> tuple[Any, ...]:
    style = "green" if found.is_kept else "bold red" if found.violations else "yellow"
    return (
        found.algorithm,
        found.scenario,
        found.histories,
        found.required,
        Text(found.worst or "-", style=style),
        len(found.violations),
        found.unknown,
        Text(f"{found.mean_lookups:.2f}"),
        Text(f"{found.most_lookups:.2f}"),
    )


def _listed(found: Measured) -> str:
    some = [f"{seed} ({level})" for seed, level in found.violations[:_SEEDS_LISTED]]
    more = len(found.violations) - len(some)
    return f"below {found.required}: seeds {', '.join(some)}{f' and {more:,} more' * bool(more)}"


@contextmanager
def _progress(total: int) -> Iterator[Advance]:
    """A bar where somebody watches standard error, else a line now and then."""
    watched = console(stderr=True)
    if watched.is_terminal:
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
        with Progress(*columns, TimeRemainingColumn(), console=watched, transient=True) as bar:
            task = bar.add_task("", total=total)
            yield _Advancing(lambda done, text: bar.update(task, completed=done, description=text))
    else:
        yield _Advancing(_Lines(total))


class _Advancing:
    """Adds up what the cells report, each from zero."""

    def __init__(self, tell: Callable[[int, str], None]) -> None:
        self._tell = tell
        self._before, self._last = 0, 0

    def __call__(self, found: Measured) -> None:
        if not found.histories:
            self._before += self._last
        self._last = found.histories
        wrong = f", {len(found.violations):,} violations" if found.violations else ""
        wrong += f", {found.unknown:,} unknown" if found.unknown else ""
        self._tell(self._before + self._last, f"{found.algorithm}, {found.scenario}{wrong}")


class _Lines:
    """Plain lines, not too many."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._time = time.monotonic()

    def __call__(self, done: int, text: str) -> None:
        now = time.monotonic()
        if now - self._time >= _SECONDS_BETWEEN_LINES:
            note(f"{done:,} of {self._total:,} histories: {text}")
            self._time = now
