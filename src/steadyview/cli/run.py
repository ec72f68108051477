"""`steadyview run`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from steadyview.cli.completion import view_names
from steadyview.cli.files import check_writable, write
from steadyview.cli.opening import opened, tell_rights
from steadyview.cli.options import HERE, DebugOption, JsonOption, ProjectOption
from steadyview.cli.progress import json_lines, progress_display
from steadyview.cli.reporting import ExitCode, reporting
from steadyview.cli.status_table import held_back, source_errors, view_errors
from steadyview.cli.stopping import run_until_signalled
from steadyview.cli.tables import note, print_json

if TYPE_CHECKING:
    from steadyview.papers.recording import Recording
    from steadyview.runtime.status import Status
    from steadyview.runtime.warehouse import Warehouse


class _Chosen(TypedDict):
    """How views are kept during this run, and what is written down of it."""

    algorithm: str | None
    recordings: list[Recording]


def command(  # noqa: PLR0913 - the options of a command
    once: Annotated[
        bool, typer.Option("--once", help="Process all that is committed by now, then exit.")
    ] = False,
    algorithm: Annotated[
        str | None, typer.Option(metavar="NAME", help="Keep every view by this algorithm.")
    ] = None,
    record: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write what a view shows, for judging.")
    ] = None,
    view: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The view to record, where there are more.",
            autocompletion=view_names,
        ),
    ] = None,
    project: ProjectOption = HERE,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Capture changes and maintain every view, until Ctrl-C.

    With --once: everything committed at any source before the command started is captured,
    propagated and published, then it exits with code 0, or 1 if a view is refused or stopped.

    [bold]Examples[/]

        steadyview run

        steadyview run --once --json

        steadyview run --algorithm sweep --record history.json
    """
    with reporting(as_json=json, debug=debug), opened(project) as warehouse:
        tell_rights(warehouse.project)
        warehouse.tell = note
        if record is not None:
            check_writable(record)
        recordings = [] if record is None else [warehouse.recording(view)]
        chosen = _Chosen(algorithm=algorithm, recordings=recordings)
        if once:
            _run_once(warehouse, chosen, as_json=json)
        else:
            _run_until_stopped(warehouse, chosen, as_json=json)
        if record is not None:
            write(record, warehouse.recorded(recordings[0]).to_json())


def _run_once(warehouse: Warehouse, chosen: _Chosen, *, as_json: bool) -> None:
    with progress_display() as progress:
        summary = warehouse.run_once(progress, **chosen)
    status = warehouse.status()
    if as_json:
        wrong = [asdict(v) for v in status.views if v.error or v.refusal]
        print_json({**summary.to_dict(), "views_with_errors": wrong})
        _exit_if_wrong(status)
        return
    done = (
        _counted(summary.transactions, "transaction"),
        _counted(summary.changes, "row change"),
        _counted(summary.lookups, "lookup"),
        f"{summary.seconds:.1f} s",
    )
    print(f"cn {summary.cn}: {', '.join(done)}")
    for error in (*source_errors(status), *view_errors(status), *held_back(status)):
        note(error)
    _exit_if_wrong(status)


def _exit_if_wrong(status: Status) -> None:
    """Exit code 1 where a view is not kept: a scheduler shall notice."""
    if any(v.state in ("refused", "stopped") or v.refusal for v in status.views):
        raise typer.Exit(ExitCode.ANSWER_IS_NO)


def _counted(number: int, noun: str) -> str:
    """A number and its noun.

    >>> _counted(1, "lookup"), _counted(2000, "lookup")
    ('1 lookup', '2,000 lookups')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _run_until_stopped(warehouse: Warehouse, chosen: _Chosen, *, as_json: bool) -> None:
    with json_lines() if as_json else progress_display() as progress:
        run_until_signalled(lambda stop: warehouse.run(stop, progress, **chosen))

