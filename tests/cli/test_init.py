"""`steadyview init`: a project that is valid, complete, and overwrites nothing."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest
from typer.testing import CliRunner

from steadyview.cli.app import app
from steadyview.runtime.project import load_project

runner = CliRunner()


def test_the_starter_project_loads_without_any_environment(tmp_path):
    assert runner.invoke(app, ["init", str(tmp_path / "my shop")]).exit_code == 0
    project = load_project(tmp_path / "my shop", environment={})
    assert project.name == "my_shop"
    assert {v.name for v in project.views} == {"revenue_by_region", "order_details"}


def test_the_starter_databases_hold_the_tables_that_the_project_names(tmp_path):
    runner.invoke(app, ["init", str(tmp_path)])
    for settings in load_project(tmp_path, {}).sources.values():
        with closing(sqlite3.connect(settings["path"])) as database:
            for table in settings["tables"]:
                assert database.execute(f'SELECT COUNT(*) FROM "{table}"').fetchone()[0] > 0


@pytest.mark.parametrize("existing", ["steadyview.toml", "sales.db", "views/order_details.sql"])
def test_nothing_is_overwritten_and_nothing_begun(tmp_path, existing):
    file = tmp_path / existing
    file.parent.mkdir(exist_ok=True)
    file.write_text("mine")
    result = runner.invoke(app, ["init", str(tmp_path)])
    assert result.exit_code == 2
    assert "exists already" in result.stderr
    assert file.read_text() == "mine"
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == [file]


def test_json_lists_the_files_made(tmp_path):
    result = runner.invoke(app, ["init", str(tmp_path / "a"), "--json"])
    files = json.loads(result.stdout)["files"]
    assert all((tmp_path / "a" / file).exists() for file in files)
