"""`view list`, `view rename` and `view drop` on a project that no run has seen: no Spark."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from steadyview.cli.app import app

runner = CliRunner()


@pytest.fixture
def shop(tmp_path):
    folder = tmp_path / "shop"
    assert runner.invoke(app, ["init", str(folder)]).exit_code == 0
    (folder / "views" / "large.sql").write_text(
        "-- large ones\nSELECT order_details.order_id\nFROM order_details WHERE quantity > 9\n"
    )
    return folder


def invoke(folder, *arguments: str):
    return runner.invoke(app, ["view", *arguments, "--project", str(folder)])


def listed(folder) -> dict[str, tuple]:
    views = json.loads(invoke(folder, "list", "--json").stdout)
    return {v["name"]: (v["state"], v["path"], v["reads"]) for v in views}


def files(folder) -> list[str]:
    return sorted(path.name for path in (folder / "views").iterdir())


def test_views_are_listed_with_file_and_what_they_read(shop):
    assert listed(shop) == {
        "large": ("new", "views/large.sql", ["order_details"]),
        "order_details": ("new", "views/order_details.sql", []),
        "revenue_by_region": ("new", "views/revenue_by_region.sql", []),
    }
    assert "order_details" in invoke(shop, "list").stdout


def test_rename_changes_file_and_name_and_tells_who_reads_it(shop):
    renamed = invoke(shop, "rename", "Revenue_by_region", "revenue")
    assert renamed.exit_code == 0, renamed.output
    text = (shop / "views" / "revenue.sql").read_text()
    assert "CREATE MATERIALIZED VIEW revenue\n" in text
    told = invoke(shop, "rename", "order_details", "details").stdout
    assert "change views/large.sql:3:6: it still reads order_details" in told
    assert files(shop) == ["details.sql", "large.sql", "revenue.sql"]
    again = json.loads(invoke(shop, "rename", "details", "lines", "--json").stdout)
    assert again == {"view": "lines", "was": "details", "change": []}
    refused = invoke(shop, "rename", "lines", "LARGE")
    assert (refused.exit_code, 'there is a view "large" already' in refused.stderr) == (2, True)
    outside = invoke(shop, "rename", "lines", "../lines")
    assert (outside.exit_code, "cannot have the name" in outside.stderr) == (2, True)
    misspelt = invoke(shop, "rename", "linse", "x")
    assert 'did you mean "lines"?' in misspelt.stderr


def test_drop_asks_first_and_is_refused_while_others_read(shop):
    asked = invoke(shop, "drop", "revenue_by_region")
    assert (asked.exit_code, "--yes" in asked.stderr) == (2, True)
    read = invoke(shop, "drop", "order_details", "--yes", "--json")
    assert json.loads(read.stderr)["error"]["detail"] == "it is read by large"
    assert len(files(shop)) == 3, "nothing has been touched"
    done = invoke(shop, "drop", "order_details", "--yes", "--cascade", "--json")
    assert json.loads(done.stdout) == {"dropped": ["large", "order_details"]}
    assert files(shop) == ["revenue_by_region.sql"]
    assert listed(shop).keys() == {"revenue_by_region"}
