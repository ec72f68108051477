"""`steadyview query SQL`."""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime
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
    parse_staleness,
    parse_time,
)
from steadyview.cli.reporting import reporting
from steadyview.cli.routes import show_routes
from steadyview.cli.tables import note, show, table
from steadyview.cli.values import csv_field, iso_time, json_value
from steadyview.errors import ConfigError
from steadyview.runtime.routes import Route
from steadyview.runtime.staleness import PATIENCE, OnStale, Staleness

if TYPE_CHECKING:
    import pyarrow as pa

    from steadyview.runtime.remote import AnswerFacts


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
    max_staleness: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="The answer is at most so old, say 5m, or 0s."),
    ] = None,
    on_stale: Annotated[
        OnStale, typer.Option(help="What to do where it would be older.")
    ] = OnStale.compensate,
    as_published: Annotated[
        bool,
        typer.Option("--as-published", help="Only what the views show: fail where that is apart."),
    ] = False,
    route: Annotated[
        Route, typer.Option(help="Whether a query over tables is answered from a view.")
    ] = Route.auto,
    explain: Annotated[
        bool, typer.Option("--explain", help="Which view would answer, and why not the others.")
    ] = False,
    project: ProjectOption = HERE,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Ask views and tables of sources, all at one common commit, the newest or any kept one.

    Which commit that was, and when its rows are what they are, is printed below the table, or on
    standard error: a line for csv, an object for json. A table of a source, written source.table,
    is read at its database and brought to the commit of the views by the captured changes. A query
    over tables alone is answered from a view that gives the very same rows, if there is one.

    [bold]Examples[/]

        steadyview query "SELECT * FROM revenue_by_region ORDER BY region"

        steadyview query "SELECT COUNT(*) FROM order_details" --at 42

        steadyview query "SELECT * FROM order_details" --at 2026-11-16T10:00:00Z --format csv

        steadyview query "SELECT * FROM order_details" --max-rows 100 --timeout 30s

        steadyview query "SELECT * FROM daily_revenue" --max-staleness 5m

        steadyview query "SELECT region, COUNT(*) FROM crm.customers GROUP BY region" --explain
    """
    moment, time = parse_at(at), parse_time(timeout)
    if at is not None and max_staleness is not None:
        raise typer.BadParameter("--at says which moment; leave out --max-staleness")
    staleness = Staleness(
        parse_staleness(max_staleness), on_stale, time or PATIENCE, as_published=as_published
    )
    shape = RowFormat.json if json else format
    with reporting(as_json=shape is RowFormat.json, debug=debug), opened(project) as warehouse:
        from steadyview.runtime.remote import Wanted

        limited = time if max_staleness is None or on_stale is OnStale.compensate else None
        wanted = Wanted(sql, moment, max_rows, limited, strict, staleness, route)
        if explain:
            show_routes(warehouse.routes(wanted), as_json=shape is RowFormat.json)
            return
        answer = warehouse.told(wanted)
        facts = answer.facts
        if shape is RowFormat.json:
            _PRINTERS[shape](answer.table)
            print(json_module.dumps(facts.to_dict(), ensure_ascii=False), file=sys.stderr)
            return
        for warning in facts.warnings:
            note(f"warning: {warning}")
        for line in _how(facts):
            note(line)
        if max_staleness is not None and facts.ages:
            note(f"{facts.way}; {_ages(facts)}")
        _PRINTERS[shape](answer.table)
        line = f"as of cn {facts.cn}, {_utc(facts.time)}{_valid(facts.valid_time)}"
        if shape is RowFormat.table:
            print(line)
        else:
            note(line)
        if facts.cut:
            note(f"only the first {max_rows:,} rows are shown: there are more (--max-rows)")


def _how(facts: AnswerFacts) -> Iterator[str]:
    """What was done for the answer, where it is more than reading what the views show."""
    if facts.route is not None:
        yield f'answered from view "{facts.route["view"]}" ({facts.route["rule"]})'
    for names, done in ((facts.carried, "brought"), (facts.recomputed, "computed")):
        if names:
            plural = "s were" if len(names) > 1 else " was"
            yield (
                f"{facts.way}: view{plural} {done} to cn {facts.cn} for this query, over"
                f" {_cost(facts)}: {', '.join(names)}"
            )
    if facts.way == "compensated" and facts.commits and not (facts.carried or facts.recomputed):
        yield f"compensated: all that was committed was brought in first, {_cost(facts)}"
    if facts.way == "waited for":
        yield "waited for changes to be shown"


def _cost(facts: AnswerFacts) -> str:
    """What the change is that had to be computed."""
    commits, rows = (
        f"{number:,} {word}{'' if number == 1 else 's'}"
        for number, word in ((facts.commits, "commit"), (facts.changed_rows, "changed row"))
    )
    return f"{commits} with {rows}"


def _ages(facts: AnswerFacts) -> str:
    """How old each source's part may be."""
    found = (
        f"{name} {'unknown' if age is None else f'{age:.1f} s'}" for name, age in facts.ages.items()
    )
    return f"age by source: {', '.join(found)}"


def _valid(found: Mapping[str, Any]) -> str:
    since = "" if found["since"] is None else f" since {_utc(found['since'])}"
    until = "still" if found["end_cn"] is None else f"up to before cn {found['end_cn']}"
    return f"; the same{since}, {until}"


def _utc(time: str) -> str:
    return iso_time(datetime.fromisoformat(time))


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
