"""`steadyview get VIEW KEY...`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from steadyview.cli.opening import opened
from steadyview.cli.options import HERE, DebugOption, JsonOption, ProjectOption, ViewArgument
from steadyview.cli.reporting import ExitCode, reporting
from steadyview.cli.tables import note, print_json, show, table

if TYPE_CHECKING:
    from steadyview.runtime.store_reading import ServedRecord

_NULL = "NULL"


def command(
    view: ViewArgument,
    key: Annotated[
        list[str],
        typer.Argument(metavar="KEY...", help="The key's values in order; NULL for none."),
    ],
    project: ProjectOption = HERE,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Read one record of a served view from its store, as it is there now.

    Also shown are the last commit that changed it, and how old the newest commit is that the store
    has. Exit code 1 if there is no record of that key.

    [bold]Examples[/]

        steadyview get revenue_by_region EU

        steadyview get stock 17 Berlin --json
    """
    with reporting(as_json=json, debug=debug), opened(project) as warehouse:
        name, store = warehouse.store_of(view)
        found = store.get(name, *(None if value == _NULL else value for value in key))
        if json:
            print_json(None if found is None else found.to_dict())
        elif found is None:
            note(f'view "{name}" has no record of this key')
        else:
            show(table(tuple(found.values), [tuple(found.values.values())]))
            print(_told(found))
        if found is None:
            raise typer.Exit(ExitCode.ANSWER_IS_NO)


def _told(found: ServedRecord) -> Any:
    if found.cn is None:
        streams = ", ".join(f"{s} {n}" for s, n in sorted(found.signature.items()))
        return f"reflects {streams}; all committed until {found.age_seconds:,.1f} s ago"
    return (
        f"changed at cn {found.cn}; the store is at cn {found.as_of},"
        f" committed {found.age_seconds:,.1f} s ago"
    )
