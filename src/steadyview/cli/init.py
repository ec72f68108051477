"""`steadyview init DIR`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from steadyview.cli.options import DebugOption, JsonOption
from steadyview.cli.reporting import reporting
from steadyview.cli.starter_project import create_starter
from steadyview.cli.tables import print_json


def command(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where; made if missing.")],
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Make a commented project that runs as it is, on two small SQLite databases.

    [bold]Example[/]

        steadyview init shop
    """
    with reporting(as_json=json, debug=debug):
        files = create_starter(directory)
        if json:
            print_json({"project": str(directory), "files": files})
            return
        for file in files:
            print(f"  {directory / file}")
        print(f"\nNow run:\n\n  cd {shlex.quote(str(directory))}\n  steadyview run --once")
        print('  steadyview query "SELECT * FROM revenue_by_region"\n  steadyview verify')
