"""A database that goes away is told, the others go on, and nothing is missed when it is back."""

from __future__ import annotations

import json

import psycopg
import pytest
from psycopg import conninfo
from typer.testing import CliRunner

from steadyview.cli.app import app
from steadyview.errors import ChangesLost, SourceUnavailable
from steadyview.runtime.warehouse import Warehouse
from tests.crash.checks import check_all
from tests.crash.running import Running, opened, published
from tests.crash.server import Server
from tests.crash.shop import Shop, shop_on


@pytest.fixture
def server(tmp_path):
    server = Server(tmp_path / "postgres")
    yield server
    server.delete()


@pytest.fixture
def shop(tmp_path, server) -> Shop:
    shop = shop_on(server, tmp_path / "shop", views=("sold", "totals", "regions"))
    shop.begin()
    return shop


def source(status, name: str):
    return next(s for s in status.sources if s.name == name)


def cn_of(status, view: str) -> int:
    return next(v.cn for v in status.views if v.name == view)


def test_run_tells_a_lost_database_keeps_the_others_and_catches_up(shop, server, spark):
    with opened(shop.folder, spark) as here, Running(here.warehouse) as running:
        running.until(published)
        shop.sell()
        running.until(lambda s: s.cn == 3 and published(s))
        server.stop()
        lost = running.until(lambda s: source(s, "shop").error is not None)
        assert source(lost, "shop").state == "error"
        assert "postgresql://" not in str(lost)
        elsewhere = source(Warehouse(shop.folder).status(), "shop")
        assert (elsewhere.state, elsewhere.error) == ("error", source(lost, "shop").error)
        assert elsewhere.contact_seconds is not None
        assert elsewhere.error_seconds is not None
        shop.move(1)
        others = running.until(lambda s: cn_of(s, "regions") == 4)
        assert cn_of(others, "sold") == 3
        server.start()
        shop.sell()
        running.until(lambda s: s.cn == 7 and published(s))
        check_all(shop, here, ["sold", "totals", "regions"])


def test_run_starts_without_a_known_database_and_takes_it_up_when_it_is_there(shop, server, spark):
    with opened(shop.folder, spark) as here:
        here.warehouse.run_once()
        shop.sell()
        server.stop()
        with pytest.raises(SourceUnavailable, match='source "shop" does not answer'):
            here.warehouse.run_once()
        with Running(here.warehouse) as running:
            shop.move(1)
            running.until(lambda s: cn_of(s, "regions") == 1 and source(s, "shop").error)
            server.start()
            running.until(lambda s: s.cn == 4 and published(s))
            check_all(shop, here)


def test_run_waits_for_a_database_that_was_never_seen(shop, server, spark):
    server.stop()
    with opened(shop.folder, spark) as here, Running(here.warehouse) as running:
        waiting = running.until(lambda s: s.error is not None)
        assert 'source "shop" does not answer' in str(waiting.error)
        server.start()
        running.until(published)
        check_all(shop, here)


@pytest.fixture
def clerk(server, shop) -> psycopg.Connection:
    """A session of the owner; the project runs as a role that may only read and replicate."""
    with server.connect() as owner:
        owner.execute("CREATE ROLE clerk LOGIN REPLICATION")
        owner.execute("GRANT SELECT ON orders TO clerk")
        owner.execute("CREATE PUBLICATION steadyview_shop FOR TABLE ONLY orders")
        settings = shop.folder / "steadyview.toml"
        clerks = conninfo.make_conninfo(server.url, user="clerk")
        settings.write_text(settings.read_text().replace(f'"{server.url}"', json.dumps(clerks)))
        yield owner


def test_a_source_that_refuses_is_left_out_and_the_others_go_on(shop, clerk, spark):
    with opened(shop.folder, spark) as here:
        with Running(here.warehouse) as running:
            running.until(published)
            clerk.execute("REVOKE SELECT ON orders FROM clerk")
            shop.sell(1)
            running.until(lambda s: "permission denied" in (source(s, "shop").error or ""))
            shop.move(1)
            running.until(lambda s: cn_of(s, "regions") == 2)
            clerk.execute("GRANT SELECT ON orders TO clerk")
            running.until(lambda s: s.cn == 2 and published(s))
        clerk.execute("ALTER TABLE orders REPLICA IDENTITY DEFAULT")
        with Running(here.warehouse) as running:
            shop.move(1)
            left = running.until(lambda s: cn_of(s, "regions") == 3 and source(s, "shop").error)
            assert "REPLICA IDENTITY FULL" in source(left, "shop").error
            clerk.execute("ALTER TABLE orders REPLICA IDENTITY FULL")
            with Warehouse(shop.folder) as outside:
                # changes were being lost, and that was seen
                for view in ("sold", "totals"):
                    outside.rebuild(view)
            running.until(published)
        check_all(shop, here, ["sold", "totals", "regions"])


def test_a_file_that_was_moved_away_is_missed_until_it_is_back(shop, spark):
    shop.add_view("pairs")
    file, elsewhere = shop.folder / "crm.db", shop.folder / "moved.db"
    with opened(shop.folder, spark) as here, Running(here.warehouse) as running:
        running.until(published)
        file.rename(elsewhere)
        running.until(lambda s: "does not exist" in (source(s, "crm").error or ""))
        shop.sell(1)
        running.until(lambda s: cn_of(s, "pairs") == 1)
        elsewhere.rename(file)
        shop.move(1)
        running.until(lambda s: s.cn == 2 and published(s))
        check_all(shop, here, ["sold", "totals", "regions", "pairs"])


def test_changes_lost_with_the_slot_are_told_and_removing_the_source_builds_anew(
    shop, server, spark
):
    with opened(shop.folder, spark) as here:
        here.warehouse.run_once()
        shop.sell()
        here.warehouse.run_once()
        with server.connect() as connection:
            connection.execute(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
            )
        shop.sell()
        with pytest.raises(ChangesLost, match="steadyview source resnapshot shop"):
            here.warehouse.run_once()
    removed = CliRunner().invoke(app, ["source", "remove", "shop", "--project", str(shop.folder)])
    assert removed.exit_code == 0, removed.output
    shop.sell()
    with opened(shop.folder, spark) as here:
        here.warehouse.run_once()
        shop.states["shop"] = [shop.orders()]
        assert {v.equal for v in here.warehouse.verify()} == {True}
        rows = here.ask("rows", view="sold")
        assert len(rows) == len(shop.expected("sold", 0, -1))


def test_a_server_that_is_down_is_a_transient_error_of_the_command_line(shop, server):
    server.stop()
    result = CliRunner().invoke(app, ["run", "--once", "--json", "--project", str(shop.folder)])
    assert result.exit_code == 3
    error = json.loads(result.stderr.splitlines()[-1])["error"]
    assert error["kind"] == "SourceUnavailable"
    assert error["transient"]
