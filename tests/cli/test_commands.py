"""The commands on the starter project, one after another as a person would run them."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from contextlib import closing

import pytest
from typer.testing import CliRunner

from steadyview.cli.app import app

pytestmark = pytest.mark.usefixtures("spark")
runner = CliRunner()
REVENUE = "SELECT region, revenue_cents FROM revenue_by_region ORDER BY region"


@pytest.fixture(scope="module")
def shop(tmp_path_factory, spark):
    """A starter project, run once."""
    folder = tmp_path_factory.mktemp("projects") / "my shop"
    assert runner.invoke(app, ["init", str(folder)]).exit_code == 0
    succeed(folder, "run", "--once")
    return folder


def invoke(folder, *arguments: str):
    return runner.invoke(app, [*arguments, "--project", str(folder)])


def succeed(folder, *arguments: str) -> str:
    result = invoke(folder, *arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(folder, *arguments: str) -> dict:
    result = invoke(folder, *arguments, "--json")
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    return json.loads(result.stderr)["error"]


def newest_cn(folder) -> int:
    return json.loads(succeed(folder, "status", "--json"))["cn"]


def revenue(folder, *arguments: str) -> list[dict]:
    return json.loads(succeed(folder, "query", REVENUE, "--json", *arguments))


def test_check_finds_every_starter_view_incremental(shop):
    checks = json.loads(succeed(shop, "check", "--json"))
    assert {c["name"]: c["verdict"] for c in checks if "source" not in c} == {
        "order_details": "incremental",
        "revenue_by_region": "incremental",
    }


def test_check_notes_what_capture_does_not_see_and_who_does(shop):
    notes = [c for c in json.loads(succeed(shop, "check", "--json")) if "source" in c]
    assert [(c["source"], c["verdict"], c["hint"]) for c in notes] == [
        ("crm", "note", None),
        ("sales", "note", None),
    ]
    assert all(c["message"].endswith("the daily audit does") for c in notes)
    settings = shop / "steadyview.toml"
    before = settings.read_text()
    settings.write_text(before.replace("[sources.crm]", '[sources.crm]\naudit = "off"'))
    try:
        told = succeed(shop, "check")
    finally:
        settings.write_text(before)
    assert "only verify does" in " ".join(told.split())
    assert 'set audit = "daily" in [sources.crm]' in " ".join(told.split())


def test_explain_names_the_relations(shop):
    text = succeed(shop, "explain", "revenue_by_region")
    for relation in ("sales.orders", "sales.order_lines", "crm.customers"):
        assert relation in text
    json.loads(succeed(shop, "explain", "revenue_by_region", "--json"))


def test_explain_of_an_unknown_view_is_a_definite_error(shop):
    assert '"nothing"' in refused(shop, "explain", "nothing")["message"]


@pytest.mark.parametrize("command", ["explain", "history", "verify"])
def test_a_misspelt_view_is_told_with_the_nearest(shop, command):
    assert refused(shop, command, "revenu_by_region")["hint"] == 'did you mean "revenue_by_region"?'


def test_status_shows_every_source_and_view(shop):
    text = succeed(shop, "status")
    for name in ("sales", "crm", "revenue_by_region", "order_details"):
        assert name in text
    status = json.loads(succeed(shop, "status", "--json"))
    assert {view["cn"] for view in status["views"]} == {status["cn"]}


def test_query_prints_rows_and_the_commit_they_are_of(shop):
    text = succeed(shop, "query", REVENUE)
    assert "north" in text
    assert f"as of cn {newest_cn(shop)}, " in text


def test_query_as_json_is_an_array_and_the_commit_is_on_stderr(shop):
    result = invoke(shop, "query", REVENUE, "--format", "json")
    assert {"region": "north", "revenue_cents": 7770} in json.loads(result.stdout)
    facts = json.loads(result.stderr.splitlines()[-1])
    assert facts["cn"] == newest_cn(shop)
    assert facts["way"] == "as published"
    assert facts["valid_time"]["first_cn"] <= facts["cn"]
    assert facts["ages"].keys() == {"sales", "crm"}


def test_a_query_reads_tables_of_sources_and_says_how_old_it_may_be(shop):
    sql = "SELECT region, revenue_cents FROM revenue_by_region JOIN crm.customers c USING (region)"
    text = succeed(shop, "query", sql, "--max-staleness", "0s")
    assert "7770" in text
    assert "; the same since " in text
    for words in (("--max-staleness", "soon"), ("--at", "0", "--max-staleness", "1m")):
        assert invoke(shop, "query", sql, *words).exit_code == 2


def test_a_query_over_tables_is_answered_from_a_view_and_says_so(shop):
    sql = """SELECT c.region, SUM(l.price_cents * l.quantity) AS revenue_cents FROM sales.orders o
        JOIN sales.order_lines l ON l.order_id = o.id JOIN crm.customers c ON c.id = o.customer_id
        GROUP BY c.region ORDER BY 2 DESC"""
    answers = {}
    for route in ("require", "off"):
        result = invoke(shop, "query", sql, "--json", "--route", route)
        answers[route] = json.loads(result.stdout)
        facts = json.loads(result.stderr.splitlines()[-1])
        assert (facts["route"] is None) == (route == "off")
    assert answers["require"] == answers["off"] != []
    assert 'answered from view "revenue_by_region"' in invoke(shop, "query", sql).stderr
    plan = json.loads(succeed(shop, "query", sql, "--explain", "--json"))
    assert plan["taken"]["view"] == "revenue_by_region"
    assert [t["view"] for t in plan["turned"]] == ["order_details"]
    text = succeed(shop, "query", sql, "--explain")
    assert "answered from view" in text
    assert "order_details" in text
    error = refused(shop, "query", "SELECT COUNT(*) FROM sales.orders", "--route", "require")
    assert error["message"] == "the query cannot be answered from a view"
    assert "it does not read the same tables" in error["detail"]


def test_what_changed_is_printed_once_and_from_where_a_name_left_off(shop):
    first = lines_of(shop, "subscribe", "revenue_by_region", "--as", "lines")
    assert {line.get("state", line.get("end")) for line in first} == {True}
    assert lines_of(shop, "subscribe", "revenue_by_region", "--as", "lines") == []
    listed = json.loads(succeed(shop, "subscription", "list", "--json"))
    assert [(s["name"], s["view"], s["behind"]) for s in listed] == [
        ("lines", "revenue_by_region", 0)
    ]
    succeed(shop, "subscription", "reset", "lines", "--from", "start")
    again = lines_of(shop, "subscribe", "revenue_by_region", "--as", "lines")
    assert again[0]["reset"] is True
    assert again[0]["epoch"] == 1
    text = succeed(shop, "subscribe", "revenue_by_region", "--as", "csv", "--format", "csv")
    assert [r["kind"] for r in csv.DictReader(io.StringIO(text, newline=""))][-1] == "end"
    envelopes = lines_of(
        shop, "subscribe", "revenue_by_region", "--as", "deb", "--format", "debezium"
    )
    assert {e.get("op") for e in envelopes[:-1]} == {"r"}
    succeed(shop, "subscribe", "revenue_by_region", "--as", "by-hand", "--ack", "manual")
    cn = str(again[0]["cn"])
    assert json.loads(succeed(shop, "subscription", "ack", "by-hand", cn, "--json"))["moved"]
    succeed(shop, "subscription", "drop", "lines")
    error = refused(shop, "subscription", "drop", "lines")
    assert error["message"] == 'there is no subscription "lines"'


def lines_of(shop, *words):
    return [json.loads(line) for line in succeed(shop, *words).splitlines()]


def test_query_as_csv_is_read_back_by_a_csv_reader(shop):
    text = succeed(shop, "query", REVENUE, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert {"region": "north", "revenue_cents": "7770"} in rows


def test_query_of_no_rows_is_an_empty_array(shop):
    sql = "SELECT region FROM revenue_by_region WHERE region = 'nowhere'"
    assert json.loads(succeed(shop, "query", sql, "--json")) == []


def test_rows_beyond_the_limit_are_not_printed_and_that_is_said(shop):
    words = ("query", REVENUE, "--max-rows", "1", "--timeout", "5m")
    result = invoke(shop, *words, "--json")
    assert result.exit_code == 0
    assert len(json.loads(result.stdout)) == 1
    assert json.loads(result.stderr)["cut"] is True
    assert "only the first 1 rows" in invoke(shop, *words, "--format", "csv").stderr


def test_a_warning_is_on_stderr_and_the_rows_on_stdout(shop):
    words = ("query", 'SELECT "region" AS r FROM revenue_by_region LIMIT 1')
    result = invoke(shop, *words, "--json")
    assert json.loads(result.stdout) == [{"r": "region"}]
    (warning,) = json.loads(result.stderr)["warnings"]
    assert "\"region\" is the text 'region' here" in warning
    assert f"warning: {warning}" in invoke(shop, *words).stderr.replace("\n", " ")


def test_a_statement_that_is_no_query_is_refused(shop):
    assert refused(shop, "query", "SET spark.app.name = x")["kind"] == "QueryRefused"


def test_two_columns_of_one_name_are_refused_as_json(shop):
    sql = "SELECT region AS a, region AS a FROM revenue_by_region"
    assert "same name" in refused(shop, "query", sql)["message"]


@pytest.mark.parametrize("sql", ["SELEC 1", "SELECT nothing FROM revenue_by_region"])
def test_a_wrong_query_is_a_definite_error(shop, sql):
    refused(shop, "query", sql)


def test_verify_finds_quiet_sources_equal_without_compensation(shop):
    verdicts = json.loads(succeed(shop, "verify", "--json"))
    assert {v["view"] for v in verdicts} == {"order_details", "revenue_by_region"}
    assert all(v["equal"] and v["compensated"] == 0 for v in verdicts)


def move(folder, customer: int, region: str) -> None:
    with closing(sqlite3.connect(folder / "crm.db")) as database:
        database.execute("UPDATE customers SET region = ? WHERE id = ?", (region, customer))
        database.commit()


def test_a_change_is_seen_by_the_next_run_and_the_past_stays(shop):
    before, rows = newest_cn(shop), revenue(shop)
    move(shop, 3, "west")
    summary = json.loads(succeed(shop, "run", "--once", "--json"))
    assert summary["transactions"] == 1
    assert summary["cn"] == newest_cn(shop) == before + 1
    assert revenue(shop) != rows
    assert revenue(shop, "--at", str(before)) == rows
    assert all(v["equal"] for v in json.loads(succeed(shop, "verify", "--json")))


def test_history_shows_which_transaction_changed_the_view_and_by_how_much(shop):
    move(shop, 1, "east")
    succeed(shop, "run", "--once")
    (newest,) = json.loads(succeed(shop, "history", "order_details", "--limit", "1", "--json"))
    assert (newest["cn"], newest["source"]) == (newest_cn(shop), "crm")
    assert (newest["added"], newest["removed"]) == (2, 2)
    assert str(newest["cn"]) in succeed(shop, "history", "order_details")


def test_compress_makes_commits_one_which_history_tells(shop):
    cns = []
    for region in ("west", "north"):
        move(shop, 1, region)
        succeed(shop, "run", "--once")
        cns.append(newest_cn(shop))
    before = json.loads(succeed(shop, "history", "order_details", "--json"))
    done = json.loads(succeed(shop, "compress", "order_details", "--json"))
    (made,) = done["ranges"]
    assert (done["until"], made["upto"], made["commits"]) == (cns[-1], cns[-1], len(before))
    assert done["bytes_after"] < done["bytes_before"]
    (line,) = json.loads(succeed(shop, "history", "order_details", "--json"))
    assert (line["cn"], line["since"], line["commits"]) == (cns[-1], made["after"], len(before))
    error = refused(shop, "query", "SELECT * FROM order_details", "--at", str(cns[0]))
    assert f"cn {made['after']} and cn {made['upto']}" in error["detail"]
    told = invoke(shop, "compress", "revenue_by_region", "--until", str(cns[-1]), "--keep", "hour")
    assert (told.exit_code, "commits up to cn" in told.stdout) == (0, True)
    nothing = invoke(shop, "compress", "order_details", "--until", "1").stderr
    assert "nothing to compress" in nothing
    late = refused(shop, "compress", "order_details", "--until", "99999")
    assert "no commit 99999" in late["message"]


def test_verify_at_a_past_commit_uses_the_log(shop):
    before = newest_cn(shop)
    with closing(sqlite3.connect(shop / "sales.db")) as database:
        database.execute("UPDATE order_lines SET quantity = quantity + 1")
        database.commit()
    succeed(shop, "run", "--once")
    verdicts = json.loads(succeed(shop, "verify", "--at", str(before), "--json"))
    assert all(v["equal"] and v["cn"] == before for v in verdicts)
    assert any(v["compensated"] > 0 for v in verdicts)


def test_a_commit_that_never_was_is_refused(shop):
    assert refused(shop, "query", REVENUE, "--at", "999999")["kind"] == "OutsideRetention"


def test_source_list_shows_sources_without_their_settings(shop):
    sources = json.loads(succeed(shop, "source", "list", "--json"))
    assert {s["name"] for s in sources} == {"sales", "crm"}


def test_a_refused_view_is_told_with_code_and_place_and_stops_no_other(tmp_path):
    runner.invoke(app, ["init", str(tmp_path / "shop")])
    file = tmp_path / "shop" / "views" / "latest.sql"
    file.write_text("SELECT MEDIAN(o.id) AS newest\nFROM sales.orders o")
    result = invoke(tmp_path / "shop", "check", "--json")
    assert result.exit_code == 1
    refused = {c["name"]: c for c in json.loads(result.stdout)}["latest"]
    assert refused["verdict"] == "refused"
    assert refused["code"]
    assert refused["hint"]
    assert (refused["line"], refused["path"]) == (1, str(file))
    assert "latest.sql:1:" in invoke(tmp_path / "shop", "check").stdout
    assert invoke(tmp_path / "shop", "run", "--once").exit_code == 1
    assert revenue(tmp_path / "shop")


def test_removing_a_source_leaves_nothing_behind(tmp_path):
    folder = tmp_path / "shop"
    runner.invoke(app, ["init", str(folder)])
    with closing(sqlite3.connect(folder / "crm.db")) as database:
        schema = database.execute("SELECT * FROM sqlite_schema ORDER BY name").fetchall()
    succeed(folder, "run", "--once")
    assert json.loads(succeed(folder, "source", "remove", "crm", "--json"))["removed"]
    with closing(sqlite3.connect(folder / "crm.db")) as database:
        assert database.execute("SELECT * FROM sqlite_schema ORDER BY name").fetchall() == schema
