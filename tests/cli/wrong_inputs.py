"""What people get wrong, and all that they are told about it: fact, detail and hint.

The texts stand in `wrong_inputs.txt`, one block per input, for people to read. After a change of
words, write them anew and read what changed:

    python -m tests.cli.wrong_inputs

Each input is tried as far down as it takes: the project's loader, the readers of views, a source
on a real database, or a command. No Spark is started.
"""

from __future__ import annotations

import re
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from psycopg import conninfo, sql
from typer.testing import CliRunner

from steadyview.catalog import Catalog, Published, ViewSpec
from steadyview.changes import Flush
from steadyview.cli.app import app
from steadyview.cli.starter_project import create_starter
from steadyview.errors import SteadyviewError
from steadyview.plans.draft import Draft
from steadyview.plans.node import Node
from steadyview.plans.plan import PlanNode
from steadyview.runtime.checks import checked
from steadyview.runtime.clock import SystemClock
from steadyview.runtime.planning import plan_views
from steadyview.runtime.project import ProjectConfig, ViewFile, load_project
from steadyview.sources.registry import open_source
from tests.servers import Database, fresh_database, shared_postgres
from tests.views.shop import RELATIONS, UNSUPPORTED

TEXTS = Path(__file__).with_name("wrong_inputs.txt")
SECRET = "s3cr3t"
ROLE = "wrong_inputs_clerk"
TOML = """[project]
name = "shop"
[sources.sales]
type = "postgresql"
url = "${SALES_URL}"
tables = ["orders"]
[sources.crm]
type = "sqlite"
path = "crm.db"
tables = ["customers"]
"""
CREATE = "CREATE MATERIALIZED VIEW v TBLPROPERTIES ({}) AS SELECT id FROM sales.orders"
DEFERRED = CREATE.format("'steadyview.policy' = 'ipda', {}")
Told = Callable[[Path], str]
"""What is told about one input, tried in an empty folder."""


# --- ways to try an input ------------------------------------------------------------------------


def project(before: str = "", after: str = "", variable: str = "SALES_URL") -> Told:
    """A project file in which `before` was written as `after`; `variable` is set to a secret."""

    def told(folder: Path) -> str:
        assert before in TOML
        (folder / "steadyview.toml").write_text(TOML.replace(before, after, 1))
        return error_of(lambda: _ready(load_project(folder, {variable: SECRET})))

    return told


def _ready(project: ProjectConfig) -> None:
    for error in project.unready.values():
        raise error


class NoSpark:
    """Every view that is understood has these types."""

    def nodes(self, _view: str, draft: Draft, origins: Any, _types: Any) -> list[PlanNode]:
        columns = tuple((c, "INT") for c in draft.columns)
        return [PlanNode(Node(draft.block), tuple(origins), columns)]

    def check_reading(self, _text: object) -> None:
        """As it is."""

    def of_text(self, *_: object) -> tuple[tuple[str, str], ...]:
        return (("x", "INT"),)


def view(text: str, **others: str) -> Told:
    """A view's file `v.sql`, beside others: what `steadyview check` says of the last one."""

    def told(_folder: Path) -> str:
        texts = {**others, "v": text} if "v" not in others else {"a": text, **others}
        files = [ViewFile(n, Path(f"views/{n}.sql"), t) for n, t in texts.items()]
        return verdict(files)

    return told


def verdict(files: list[ViewFile]) -> str:
    found = checked(plan_views(NoSpark(), files, RELATIONS, UNSUPPORTED)[-1])
    lines = [f"{found.verdict} {found.code}: {found.message}" if found.code else found.verdict]
    lines += [f"hint: {found.hint}"] if found.hint else []
    return "\n".join([*lines, *(f"warning: {warning}" for warning in found.warnings)])


def bytes_of_a_view(content: bytes) -> Told:
    """A view's file as it is on disk."""

    def told(folder: Path) -> str:
        (folder / "steadyview.toml").write_text(TOML)
        (folder / "views").mkdir()
        (folder / "views" / "v.sql").write_bytes(content)
        return verdict(list(load_project(folder, {"SALES_URL": SECRET}).views))

    return told


def sqlite(content: bytes | None, tables: list[str]) -> Told:
    """A SQLite source on a file; without content, on a database with the table `customers`."""

    def told(folder: Path) -> str:
        if content is None:
            with closing(sqlite3.connect(folder / "crm.db")) as database:
                database.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY, at BLOB_LIKE)")
        elif content:
            (folder / "crm.db").write_bytes(content)
        settings = {"type": "sqlite", "path": "crm.db", "tables": tables}
        return error_of(lambda: schemas("crm", settings, folder))

    return told


def postgres(change: Callable[[Database], str], tables: list[str] | None = None) -> Told:
    """A PostgreSQL source at the url that `change` makes of a database with the table `orders`."""

    def told(folder: Path) -> str:
        database = fresh_database()
        try:
            with database.connect() as connection:
                connection.execute("CREATE TABLE orders (id integer PRIMARY KEY)")
            return source_told(change(database), folder, tables or ["orders"])
        finally:
            database.drop()

    return told


def source_told(url: str, folder: Path, tables: list[str]) -> str:
    settings = {"type": "postgresql", "url": url, "tables": tables}
    told = error_of(lambda: schemas("sales", settings, folder))
    without_place = re.sub(r'on socket "[^"]+"|at "[^"]+", port \d+', "at <server>", told)
    return re.sub(r"test_\d+", "<database>", without_place)


def schemas(name: str, settings: Mapping[str, Any], folder: Path) -> None:
    with closing(open_source(name, settings, folder)) as source:
        source.schemas()


def url_with(**changed: Any) -> Callable[[Database], str]:
    return lambda database: conninfo.make_conninfo(database.url, **changed)


def wrong_password(database: Database) -> str:
    """A role that must prove itself, from the server's next look at its rules on, and cannot."""
    server = shared_postgres()
    rules = server.folder / "pg_hba.conf"
    if ROLE not in rules.read_text():
        rules.write_text(f"local all {ROLE} scram-sha-256\n{rules.read_text()}")
        with server.connect() as connection:
            role = sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'right'").format(sql.Identifier(ROLE))
            connection.execute(role)
            connection.execute("SELECT pg_reload_conf()")
    wrong = conninfo.make_conninfo(database.url, user=ROLE, password=f"not-{SECRET}")
    while "password" not in source_told(wrong, Path(), ["orders"]):
        pass
    return wrong


def command(*arguments: str) -> Told:
    """A command, given in an empty folder."""

    def told(folder: Path) -> str:
        put = [word.replace("<folder>", str(folder)) for word in arguments]
        ended = CliRunner().invoke(app, put, env={"COLUMNS": "200", "TERMINAL_WIDTH": "200"})
        assert ended.exit_code == 2
        words = " ".join(re.sub("[╭╮╰╯─│]", " ", ended.stderr).split(" "))
        return "\n".join(" ".join(line.split()) for line in words.splitlines() if line.strip())

    return told


def in_a_shop(*arguments: str) -> Told:
    """A command on a project that `init` has made."""

    def told(folder: Path) -> str:
        create_starter(folder / "shop")
        return command(*arguments, "--project", "<folder>/shop")(folder)

    return told


def in_a_kept_shop(*arguments: str) -> Told:
    """The same, once both views show cn 1 of 1: "cache" reads one, and "broken" the other one.

    The change tables of both were deleted.
    """

    def told(folder: Path) -> str:
        create_starter(folder / "shop")
        root = folder / "shop" / "warehouse"
        with Catalog.create(root, SystemClock()) as catalog:
            catalog.sources.register("sales", "sqlite")
            catalog.commits.admit(Flush("sales", 1, 1, 1, ""))
            for view, reader in (("order_details", "cache"), ("revenue_by_region", "broken")):
                made = ViewSpec(view, "", "complete", "incremental", '{"columns": []}', "")
                row = catalog.views.add(made, 0)
                catalog.views.publish([Published(row.id, 1, 0, 0, 0)])
                catalog.subscriptions.add(
                    reader, view, row.id, 0, changes_only=True, manual=False
                )
        said = command(*arguments, "--project", "<folder>/shop")(folder)
        return re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "<time>", said)

    return told


def already(folder: Path) -> str:
    create_starter(folder / "shop")
    return command("init", "<folder>/shop")(folder)


def error_of(attempt: Callable[[], object]) -> str:
    try:
        attempt()
    except SteadyviewError as error:
        return str(error)
    return "nothing is wrong"


# --- the inputs ----------------------------------------------------------------------------------

INPUTS: Mapping[str, Told] = {
    # the project
    "a folder without a project": command("status", "--project", "<folder>"),
    "a project file that is not TOML": project('name = "shop"', "name = shop"),
    "a section that is no section": project("[project]", "spark = 3\n[project]"),
    "a source that is no section": project(
        "[sources.sales]", "[sources]\nerp = 3\n[sources.sales]"
    ),
    "a misspelt section": project("[project]", "[spak]\n[project]"),
    "a misspelt setting of the project": project('"shop"', '"shop"\nretension = "1 day"'),
    "a misspelt setting of a source": project('path = "crm.db"', 'pth = "crm.db"'),
    "a setting that is missing": project('path = "crm.db"\n', ""),
    "a setting of the wrong kind": project('name = "shop"', "name = 3"),
    "a misspelt kind of source": project('"postgresql"', '"postgres"'),
    "a kind of source that is not known": project('"postgresql"', '"oracle"'),
    "a name that is not a name": project("[sources.crm]", '[sources."my crm"]'),
    "sources that differ only in case": project("[sources.crm]", "[sources.SALES]"),
    "tables that are no list": project('tables = ["customers"]', 'tables = "customers"'),
    "a table named twice": project('["customers"]', '["customers", "customers"]'),
    "a retention that is no duration": project('"shop"', '"shop"\nretention = "7 dais"'),
    "a size that is none": project('"shop"', '"shop"\nhold_back = "20 gigs"'),
    "a misspelt time zone": project('"shop"', '"shop"\ntimezone = "Europe/Berln"'),
    "a time zone that is none": project('"shop"', '"shop"\ntimezone = "7 o\'clock"'),
    "a limit that is no duration": project('"shop"', '"shop"\ngate_limit = "half an hour"'),
    "an audit that is not known": project('path = "crm.db"', 'path = "crm.db"\naudit = "dayly"'),
    "a warehouse that is no folder": project('"shop"', '"shop"\nwarehouse = "s3://bucket/w"'),
    "a variable that is not set": project(variable="OTHER"),
    "a misspelt variable": project(variable="SALES_URI"),
    # a view's file
    "an empty file": view(""),
    "a file that is not UTF-8": bytes_of_a_view(b"SELECT id FROM sales.orders -- caf\xe9"),
    "a file without SELECT": view("DROP TABLE sales.orders"),
    "a misspelt SELECT": view("SELCT id FROM sales.orders"),
    "two statements in a file": view("SELECT id FROM sales.orders; SELECT id FROM crm.customers"),
    "CREATE VIEW": view("CREATE VIEW v AS SELECT id FROM sales.orders"),
    "a view's name that is not a name": view(
        "CREATE MATERIALIZED VIEW `a b` AS SELECT id FROM sales.orders"
    ),
    "a view defined twice": view(
        "CREATE MATERIALIZED VIEW v AS SELECT id FROM sales.orders",
        v="SELECT region FROM crm.customers",
    ),
    "a misspelt property": view(CREATE.format("'steadyview.levle' = 'strong'")),
    "a misspelt prefix of a property": view(CREATE.format("'steadyviw.level' = 'strong'")),
    "a misspelt level": view(CREATE.format("'steadyview.level' = 'stong'")),
    "a misspelt fallback": view(CREATE.format("'steadyview.fallback' = 'recomput'")),
    "a misspelt table setting": view(CREATE.format("'steadyview.table' = 'every bath'")),
    "a misspelt compression": view(CREATE.format("'steadyview.compress' = 'hour after 1 dya'")),
    "a misspelt policy": view(CREATE.format("'steadyview.policy' = 'snapshoot'")),
    "a misspelt schedule": view(DEFERRED.format("'steadyview.schedule' = 'evry 10 minuts'")),
    "a schedule that is none": view(DEFERRED.format("'steadyview.schedule' = 'sometimes'")),
    "a misspelt time zone of a schedule": view(
        DEFERRED.format("'steadyview.schedule' = 'daily at 06:00 Berlin'")
    ),
    "a time of day that is none": view(DEFERRED.format("'steadyview.schedule' = 'daily at 24:00'")),
    "too few fields of cron": view(DEFERRED.format("'steadyview.schedule' = 'cron 0 6 * *'")),
    "a day that never comes": view(DEFERRED.format("'steadyview.schedule' = 'cron 0 6 31 2 *'")),
    "a misspelt time to refresh to": view(
        DEFERRED.format("'steadyview.refresh_to' = 'end of dya'")
    ),
    "a schedule of an immediate view": view(
        CREATE.format("'steadyview.schedule' = 'every 5 minutes'")
    ),
    "a policy and an algorithm": view(DEFERRED.format("'steadyview.algorithm' = 'sweep'")),
    "a policy and a view that may be recomputed": view(
        DEFERRED.format("'steadyview.fallback' = 'recompute'")
    ),
    "a misspelt algorithm": view(CREATE.format("'steadyview.algorithm' = 'swep'")),
    "an algorithm that needs keys": view(CREATE.format("'steadyview.algorithm' = 'strobe'")),
    # a view's SQL
    "a misspelt table": view("SELECT id FROM sales.ordrs"),
    "a table without its source": view("SELECT region FROM customers"),
    "a misspelt source": view("SELECT id FROM sale.orders"),
    "a table that is not watched": view("SELECT id FROM sales.invoices"),
    "a source that is not there": view("SELECT id FROM erp.invoices"),
    "views that read each other": view("SELECT id FROM w", w="SELECT id FROM v"),
    "a misspelt column": view("SELECT id, custmer_id FROM sales.orders"),
    "a misspelt alias": view("SELECT p.id FROM sales.orders o"),
    "a column that is not there": view("SELECT weather FROM sales.orders"),
    "a column of a type that cannot be kept": view("SELECT shape FROM sales.places"),
    "a misspelt function": view("SELECT uper(note) AS n FROM sales.orders"),
    "a misspelt type": view("SELECT CAST(id AS strng) AS s FROM sales.orders"),
    "a type of another database": view("SELECT id::text AS s FROM sales.orders"),
    "a misspelt FROM": view("SELECT id FORM sales.orders"),
    "a misspelt WHERE": view("SELECT id FROM sales.orders WERE id > 1"),
    "a name in double quotes": view('SELECT "o"."id" FROM sales.orders o'),
    "a column in double quotes": view('SELECT "id" FROM sales.orders'),
    "a text without end": view("SELECT id FROM sales.orders WHERE note = 'open"),
    "ORDER BY and LIMIT": view("SELECT id FROM sales.orders ORDER BY id LIMIT 10"),
    "a window function": view("SELECT ROW_NUMBER() OVER (ORDER BY id) AS n FROM sales.orders"),
    "MEDIAN in a view that is recomputed": view(
        "CREATE MATERIALIZED VIEW v TBLPROPERTIES ('steadyview.fallback' = 'recompute')"
        " AS SELECT MEDIAN(id) AS m FROM sales.orders"
    ),
    # sources
    "a SQLite file that is missing": sqlite(b"", ["customers"]),
    "a SQLite file that is no database": sqlite(b"id,region\n1,north\n" * 100, ["customers"]),
    "a misspelt table of SQLite": sqlite(None, ["custmers"]),
    "a url that is none": postgres(lambda _: f"postgresql://me:{SECRET}@[nonsense/"),
    "a server that is down": postgres(lambda _: f"postgresql://me:{SECRET}@127.0.0.1:1/shop"),
    "a wrong password": postgres(wrong_password),
    "an unknown role": postgres(url_with(user="nobody_knows", password=SECRET)),
    "an unknown database": postgres(url_with(dbname="nowhere")),
    "a misspelt table of PostgreSQL": postgres(url_with(), ["ordres"]),
    "a table's name that cannot be read": postgres(url_with(), ["public..orders"]),
    # commands
    "a misspelt command": command("chek"),
    "a misspelt option": command("status", "--jsn"),
    "an argument that is missing": command("explain"),
    "a misspelt source to be removed": in_a_shop("source", "remove", "sale"),
    "a view to be rebuilt that was never built": in_a_shop("view", "rebuild", "by_region"),
    "a folder that holds a project already": already,
    "a time that is none": command("query", "SELECT 1", "--at", "yesterday"),
    "a subscription that reads another view": in_a_kept_shop(
        "subscribe", "revenue_by_region", "--as", "cache"
    ),
    "a subscription that has begun elsewhere": in_a_kept_shop(
        "subscribe", "order_details", "--as", "cache", "--from", "start"
    ),
    "a name that no subscription can have": in_a_kept_shop(
        "subscribe", "order_details", "--as", "a/b"
    ),
    "a subscription to a moment that is not known yet": in_a_kept_shop(
        "subscribe", "order_details", "--as", "other", "--from", "99"
    ),
    "a misspelt subscription": in_a_kept_shop("subscription", "drop", "cach"),
    "a change table that was deleted by hand": in_a_kept_shop(
        "subscribe", "revenue_by_region", "--as", "broken"
    ),
    "a refresh to a time before the warehouse": in_a_kept_shop(
        "refresh", "order_details", "--to", "2000-01-01T00:00:00Z"
    ),
    "a refresh to a time to come": in_a_kept_shop("refresh", "order_details", "--to", "2999-01-01"),
    "a refresh of nothing": in_a_kept_shop("refresh"),
    "a refresh to what is no moment": in_a_kept_shop("refresh", "order_details", "--to", "noon"),
    "a format that is not known": command("query", "SELECT 1", "--format", "xml"),
    "an algorithm to simulate that is misspelt": command("simulate", "--algorithm", "strob"),
    "a history that is missing": command("check-history", "<folder>/none.json"),
}


def told_of(name: str) -> str:
    """What is told about one input; places that differ from run to run are called the same."""
    with tempfile.TemporaryDirectory() as folder:
        return INPUTS[name](Path(folder)).replace(folder, "<folder>")


def written() -> Iterator[tuple[str, str]]:
    """The names and texts of the file."""
    for block in TEXTS.read_text(encoding="utf-8").split("\n\n== ")[1:]:
        name, _, text = block.partition("\n")
        yield name, text.rstrip("\n")


def write() -> None:
    """Write the file anew."""
    blocks = [f"== {name}\n{told_of(name)}\n" for name in INPUTS]
    head = "What is told about wrong inputs. Written by: python -m tests.cli.wrong_inputs\n"
    TEXTS.write_text("\n".join([head, *blocks]), encoding="utf-8")


if __name__ == "__main__":
    write()
