"""`steadyview status`."""

from __future__ import annotations

from steadyview.cli.opening import opened
from steadyview.cli.options import HERE, DebugOption, JsonOption, ProjectOption
from steadyview.cli.reporting import reporting
from steadyview.cli.status_table import status_table
from steadyview.cli.tables import print_json, show


def command(
    project: ProjectOption = HERE, json: JsonOption = False, debug: DebugOption = False
) -> None:
    """Show where every source and every view stands, once.

    [bold]Example[/]

        steadyview status --json
    """
    with reporting(as_json=json, debug=debug), opened(project) as warehouse:
        status = warehouse.status()
        if json:
            print_json(status.to_dict())
        else:
            show(status_table(status))
