"""`steadyview check-history FILE`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from steadyview.cli.options import DebugOption, JsonOption
from steadyview.cli.reporting import reporting
from steadyview.cli.tables import print_json, show, table
from steadyview.cli.values import cell
from steadyview.errors import ConfigError

if TYPE_CHECKING:
    from steadyview.checking import Verdict

_STYLES = {"holds": "green", "fails": "bold red", "unknown": "yellow"}


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A recorded history, as JSON.")],
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Judge a recorded history: which level of consistency did a view's states reach?

    A history holds the sources' transactions and the states that the view showed.
    The levels are none, convergent, weak, strong and complete.

    [bold]Example[/]

        steadyview check-history history.json
    """
    with reporting(as_json=json, debug=debug):
        # Reads SQL, which takes a moment that `--help` should not cost.
        from steadyview.checking import History, judge

        verdict = judge(History.from_json(_text(file)))
        if json:
            print_json(verdict.to_dict())
        else:
            _show(verdict)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        hint = "name a file that steadyview run --record, or simulate --record, wrote"
        raise ConfigError(f'cannot read "{file}"', detail=why, hint=hint) from None


def _show(verdict: Verdict) -> None:
    answers = verdict.to_dict()["levels"]
    rows = [(level, Text(answer, style=_STYLES[answer])) for level, answer in answers.items()]
    show(
        Text.assemble("level: ", (verdict.level, "bold")),
        Text(cell(verdict.sentence).plain),
        table(("level", "answer"), rows),
        *_chain(verdict),
    )


def _chain(verdict: Verdict) -> list[Table]:
    """The vector of every state: how many commits of each source it shows."""
    chain = verdict.witness["chain"]
    if not chain:
        return []
    sources = list(chain[0]["vector"])
    rows = [(entry["state"], *entry["vector"].values()) for entry in chain]
    return [table(("state", *(f"commits of {source}" for source in sources)), rows)]
