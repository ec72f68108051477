"""What the README tells a person to do, done: on a real PostgreSQL, with the real readers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from psycopg.conninfo import make_conninfo

from steadyview.runtime.project import load_project
from steadyview.sources.registry import open_source
from steadyview.views.parse import parse_view
from tests.servers import fresh_database

README = (Path(__file__).parent.parent / "README.md").read_text()
TABLES = """
CREATE TABLE orders (id bigint PRIMARY KEY, customer_id bigint);
CREATE TABLE order_lines (order_id bigint, price numeric(10,2), quantity int);
"""


def snippet(language: str, containing: str) -> str:
    found = re.findall(rf"^```{language}\n(.*?)^```", README, re.S | re.M)
    (text,) = [text for text in found if containing in text]
    return text


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The README's project, its PostgreSQL set up with the README's statements."""
    database = fresh_database()
    with database.connect() as connection:
        connection.execute(TABLES)
        connection.execute(snippet("sql", "GRANT SELECT"))
    monkeypatch.setenv("SALES_URL", make_conninfo(database.url, user="steadyview"))
    (tmp_path / "steadyview.toml").write_text(snippet("toml", "[project]"))
    (tmp_path / "views").mkdir()
    view = tmp_path / "views" / "revenue_by_region.sql"
    view.write_text(snippet("sql", "CREATE MATERIALIZED VIEW"))
    yield load_project(tmp_path)
    with database.connect() as connection:
        connection.execute("DROP OWNED BY steadyview; DROP ROLE steadyview")
    database.drop()


def test_the_rights_that_the_readme_grants_are_enough(project):
    source = open_source("sales", project.sources["sales"], project.root)
    relations = source.schemas()
    assert source.prepare(relations) == ['created replication slot "steadyview_sales_00000000"']
    snapshot = source.snapshot()
    snapshot.close()


def test_what_the_readme_lets_somebody_else_set_up_is_left_to_them(project):
    source = open_source("sales", project.sources["sales"], project.root)
    source.prepare(source.schemas())
    assert source.remove() == ['dropped replication slot "steadyview_sales_00000000"']


def test_the_view_of_the_readme_is_read_under_its_files_name(project):
    (file,) = project.views
    assert parse_view(file.name, file.text).name == file.name
