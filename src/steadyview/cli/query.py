"""`steadyview query SQL`."""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steadyview.cli.opening import opened
from steadyview.cli.options import (
    HERE,
    DebugOption,
    JsonOption,
    ProjectOption,
    parse_at,
    parse_time,
)
from steadyview.cli.reporting import reporting
from steadyview.cli.tables import note, show, table
from steadyview.cli.values import csv_field, iso_time, json_value
from steadyview.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa


class RowFormat(StrEnum):
    """How rows are printed."""

    table = "table"
    csv = "csv"
    json = "json"


def command(  # noqa: PLR0913 - the options of a command
    sql: Annotated[str, typer.Argument(metavar="SQL", help="Spark SQL over the project's views.")],
    at: Annotated[
        str | None,
        typer.Option(metavar="CN or TIME", help="A commit number or an ISO time (UTC if no zone)."),
    ] = None,
    format: Annotated[RowFormat, typer.Option(help="How rows are printed.")] = RowFormat.table,
    max_rows: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Print at most so many rows.")
    ] = None,
    timeout: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Cancel the query after, say, 30s.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail where a view is stopped, instead of warning.")
    ] = False,
    project: ProjectOption = HERE,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Ask the views, all of them at one common commit, the newest or any kept one.

    Which commit that was is printed below the table, or on standard error for csv and json.

    [bold]Examples[/]

        steadyview query "SELECT * FROM revenue_by_region ORDER BY region"

        steadyview query "SELECT COUNT(*) FROM order_details" --at 42

        steadyview query "SELECT * FROM order_details" --at 2026-11-16T10:00:00Z --format csv

        steadyview query "SELECT * FROM order_details" --max-rows 100 --timeout 30s
    """
    moment, time = parse_at(at), parse_time(timeout)
    shape = RowFormat.json if json else format
    with reporting(as_json=shape is RowFormat.json, debug=debug), opened(project) as warehouse:
        from steadyview.runtime.remote import Wanted

        answer = warehouse.told(Wanted(sql, moment, max_rows, time, strict))
        for warning in answer.warnings:
            note(f"warning: {warning}")
        _PRINTERS[shape](answer.table)
        line = f"as of cn {answer.cn}, {iso_time(answer.time)}"
        if shape is RowFormat.table:
            print(line)
        else:
            note(line)
        if answer.cut:
            note(f"only the first {max_rows:,} rows are shown: there are more (--max-rows)")


def _print_table(rows: pa.Table) -> None:
    show(table(rows.column_names, _tuples(rows)))
    print(f"{rows.num_rows:,} row{'' if rows.num_rows == 1 else 's'}")


def _print_csv(rows: pa.Table) -> None:
    for record in (rows.column_names, *_tuples(rows)):
        sys.stdout.write(",".join(map(csv_field, record)) + "\r\n")


def _print_json(rows: pa.Table) -> None:
    names = rows.column_names
    if len(set(names)) < len(names):
        raise ConfigError(
            "two columns of the answer have the same name, which a JSON object cannot have",
            hint="name the columns: SELECT a.id AS a_id, b.id AS b_id ...",
        )
    separator = "[\n"
    for record in _tuples(rows):
        fields = dict(zip(names, map(json_value, record), strict=True))
        sys.stdout.write(separator + json_module.dumps(fields, ensure_ascii=False, allow_nan=False))
        separator = ",\n"
    print("[]" if separator == "[\n" else "\n]")


def _tuples(rows: pa.Table) -> Iterator[tuple[Any, ...]]:
    # Batch by batch: Python values of the whole answer at once would take many times its memory.
    for batch in rows.to_batches():
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


_PRINTERS = {RowFormat.table: _print_table, RowFormat.csv: _print_csv, RowFormat.json: _print_json}
