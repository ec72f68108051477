"""The command line: one file per command, put together here."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from typing import Annotated

import typer

from steadyview.cli import (
    check,
    check_history,
    explain,
    get,
    graph,
    history,
    init,
    query,
    refresh,
    run,
    serve,
    simulate,
    source,
    status,
    subscribe,
    subscription,
    verify,
    view,
)
from steadyview.cli.quiet_java import hide_incubator_warning

_NAME = "steadyview"
_COMPLETING = "_STEADYVIEW_COMPLETE"
"""Set by the shell that asks for completions: it waits, and Java is never started."""

app = typer.Typer(
    name=_NAME,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("init")(init.command)
app.command("check")(check.command)
app.command("explain")(explain.command)
app.command("graph")(graph.command)
app.command("run")(run.command)
app.command("refresh")(refresh.command)
app.command("status")(status.command)
app.command("query")(query.command)
app.command("get")(get.command)
app.command("history")(history.command)
app.command("subscribe")(subscribe.command)
app.command("verify")(verify.command)
app.command("check-history")(check_history.command)
app.command("simulate")(simulate.command)
app.add_typer(serve.app, name="serve")
app.add_typer(source.app, name="source")
app.add_typer(subscription.app, name="subscription")
app.add_typer(view.app, name="view")


def _print_version(wanted: bool) -> None:
    if wanted:
        # Imported late: it takes longer than everything else that `--help` needs of the library.
        from importlib.metadata import version

        print(f"steadyview {version('steadyview')}")
        raise typer.Exit


@app.callback()
def steadyview(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Materialized views over several live databases, kept by Spark, consistent at every commit.

    Start with: steadyview init shop && steadyview run --once --project shop
    """


def main() -> None:
    """Run the command line with the process's arguments, and exit."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    if _COMPLETING not in os.environ:
        hide_incubator_warning()
    app(prog_name=_NAME)
