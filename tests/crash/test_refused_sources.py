"""A source that is not as it must be: the command line says what is wrong and what to do."""

from __future__ import annotations

import json

import pytest
from psycopg import conninfo
from typer.testing import CliRunner

from steadyview.cli.app import app
from tests.crash.server import Server
from tests.crash.shop import shop_on

PASSWORD = "let-me-in-42"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("server") / "postgres")
    server.ask_for_password("clerk", PASSWORD)
    yield server
    server.delete()


@pytest.fixture(scope="module")
def shop(tmp_path_factory, server):
    return shop_on(server, tmp_path_factory.mktemp("project") / "shop")


@pytest.fixture
def settings(shop):
    """The project's settings, to be spoiled; they are mended afterwards."""
    file = shop.folder / "steadyview.toml"
    text = file.read_text()
    yield file
    file.write_text(text)


def refused(shop, *command: str) -> dict:
    result = CliRunner().invoke(app, [*command, "--json", "--project", str(shop.folder)])
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.stderr
    return json.loads(result.stderr.splitlines()[-1])["error"]


def test_a_wrong_password_is_refused_without_showing_it(shop, server, settings, spark):
    wrong = conninfo.make_conninfo(server.url, user="clerk", password=f"not-{PASSWORD}")
    settings.write_text(settings.read_text().replace(f'"{server.url}"', json.dumps(wrong)))
    error = refused(shop, "run", "--once")
    assert error["kind"] == "SourceRefused"
    assert "password authentication failed" in error["detail"]
    assert PASSWORD not in str(error)


def test_a_missing_table_is_named(shop, settings, spark):
    settings.write_text(settings.read_text().replace("public.orders", "public.nowhere"))
    error = refused(shop, "run", "--once")
    assert error["kind"] == "SourceRefused"
    assert "nowhere" in error["message"]


def test_a_table_without_full_identity_is_refused_with_the_statement_to_run(shop, server, spark):
    with server.connect() as connection:
        connection.execute("ALTER TABLE orders REPLICA IDENTITY DEFAULT")
        error = refused(shop, "run", "--once")
        assert error["kind"] == "SourceRefused"
        assert 'ALTER TABLE "public"."orders" REPLICA IDENTITY FULL;' in error["hint"]
        connection.execute("ALTER TABLE orders REPLICA IDENTITY FULL")


def test_check_tells_what_is_missing_with_the_statement_to_run(shop, server, spark):
    with server.connect() as connection:
        connection.execute("ALTER TABLE orders REPLICA IDENTITY DEFAULT")
        command = ["check", "--json", "--project", str(shop.folder)]
        result = CliRunner().invoke(app, command)
        connection.execute("ALTER TABLE orders REPLICA IDENTITY FULL")
    assert result.exit_code == 1, result.output
    told = [c for c in json.loads(result.stdout) if "source" in c]
    (found,) = [c for c in told if c["verdict"] != "note"]
    (note,) = [c for c in told if c["verdict"] == "note" and c["source"] == "shop"]
    assert note["message"].endswith("; its audit is off: only verify does")
    assert note["hint"] == 'set audit = "daily" in [sources.shop]'
    assert (found["source"], found["verdict"]) == ("shop", "not ready")
    assert 'ALTER TABLE "public"."orders" REPLICA IDENTITY FULL;' in found["hint"]
    assert CliRunner().invoke(app, command).exit_code == 0


def test_a_server_without_logical_decoding_is_refused_with_the_setting(tmp_path, spark):
    server = Server(tmp_path / "postgres", wal_level="replica")
    try:
        error = refused(shop_on(server, tmp_path / "shop"), "run")
    finally:
        server.delete()
    assert error["kind"] == "SourceRefused"
    assert "wal_level" in error["message"]
    assert "ALTER SYSTEM SET wal_level = 'logical'" in error["hint"]
