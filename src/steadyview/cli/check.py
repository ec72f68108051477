"""`steadyview check`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer
from rich.text import Text

from steadyview.cli.opening import opened
from steadyview.cli.options import HERE, DebugOption, JsonOption, ProjectOption
from steadyview.cli.reporting import ExitCode, reporting
from steadyview.cli.tables import note, print_json, show, table

if TYPE_CHECKING:
    from steadyview.runtime.checks import SourceCheck, ViewCheck

_STYLES = {"incremental": "green", "recomputed": "yellow", "refused": "bold red"}
_NO = frozenset({"refused", "not ready"})


def command(
    project: ProjectOption = HERE, json: JsonOption = False, debug: DebugOption = False
) -> None:
    """Say of every view: incremental, recomputed or refused; and what is missing at the sources.

    A refused view comes with a reason code (docs/reasons.md), its place in the file and a hint.
    A note at each source says what capture does not see there, and whether an audit does.
    Nothing is changed. Exit code 1 if a view is refused or a source is not ready.

    [bold]Example[/]

        steadyview check --project shop
    """
    with reporting(as_json=json, debug=debug), opened(project) as warehouse:
        checks = warehouse.check()
        if json:
            print_json([check.to_dict() for check in checks])
        else:
            _show(checks)
        if any(check.verdict in _NO for check in checks):
            raise typer.Exit(ExitCode.ANSWER_IS_NO)


def _show(checks: list[ViewCheck | SourceCheck]) -> None:
    from steadyview.runtime.checks import ViewCheck

    views = [check for check in checks if isinstance(check, ViewCheck)]
    if views:
        rows = [(c.name, Text(c.verdict, style=_STYLES[c.verdict]), c.code or "") for c in views]
        show(table(("view", "verdict", "reason"), _plain(rows)))
    else:
        note("there are no views yet: put SQL files into views/")
    for check in checks:
        if check.message:
            show(_explained(check) if isinstance(check, ViewCheck) else _missing(check))
    for view in views:
        for warning in view.warnings:
            show(Text.assemble((f"{view.path}: warning: ", "yellow"), warning))


def _missing(check: SourceCheck) -> Text:
    style = "dim" if check.verdict == "note" else "bold red"
    text = Text.assemble((f"{check.name}: ", style), check.message)
    return text.append(f"\n  hint: {check.hint}") if check.hint else text


def _plain(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [tuple(Text(v) if isinstance(v, str) else v for v in row) for row in rows]


def _explained(check: ViewCheck) -> Text:
    place = ":".join(str(part) for part in (check.path, check.line, check.column) if part)
    text = Text.assemble((f"{place}: ", "bold"), f"{check.code}: {check.message}")
    if check.hint:
        text.append(f"\n  hint: {check.hint}")
    return text
