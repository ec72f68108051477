"""A small shop over a PostgreSQL database and a SQLite file, whose every state is remembered.

Claim: after `n` transactions of a source since `begin`, `states[source][n]` is what it held; so the
state of a view at any cn follows from the commit table and plain SQLite, without Spark and without
the product's log. Assumes: nobody else writes to the two databases. SQLite does not show where its
transactions end, so the product may take several as one: which of them is found out.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import pytest

from tests.servers import Database, fresh_database

VIEWS = {
    "sold": """
        SELECT c.region, o.amount FROM shop.orders o JOIN crm.customers c ON c.id = o.customer
    """,
    "totals": """
        SELECT c.region, COUNT(*) AS orders, SUM(o.amount) AS total
        FROM shop.orders o JOIN crm.customers c ON c.id = o.customer GROUP BY c.region
    """,
    "pairs": """
        SELECT a.id AS one, b.id AS other FROM shop.orders a JOIN shop.orders b
        ON a.customer = b.customer WHERE a.id < b.id
    """,
    "regions": "SELECT c.region, COUNT(*) AS customers FROM crm.customers c GROUP BY c.region",
}
_TOML = """
[project]
name = "shop"
warehouse = "{warehouse}"
[spark]
"spark.master" = "local[2]"
"spark.driver.memory" = "1g"
"spark.driver.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
[sources.shop]
type = "postgresql"
url = "{url}"
tables = ["public.orders"]
audit = "off"
[sources.crm]
type = "sqlite"
path = "crm.db"
tables = ["customers"]
audit = "off"
"""
Rows = list[tuple]
FULL = 400
"""With more orders than these more go than come."""


@dataclass
class Shop:
    """The project folder, its two databases, and what was done to them."""

    folder: Path
    database: Database
    random: random.Random
    states: dict[str, list[Rows]] = field(default_factory=dict)
    next_id: int = 1
    _rows: dict[tuple, tuple] = field(default_factory=dict)
    """Each row that ever was, once: states share them."""

    @property
    def warehouse(self) -> Path:
        return self.folder / "warehouse"

    def begin(self) -> None:
        """From now on transactions are counted: call it before the first `run`."""
        self.states = {"shop": [self.orders()], "crm": [self.customers()]}

    def add_view(self, name: str, text: str | None = None) -> None:
        (self.folder / "views" / f"{name}.sql").write_text(text or VIEWS[name])

    def sell(self, transactions: int = 3) -> None:
        """Transactions of several rows each: orders come, change customer or amount, and go."""
        with self.database.connect() as connection:
            for _ in range(transactions):
                with connection.transaction():
                    self._order(connection)
                    self._change(connection)
                self._remember("shop", self.orders())

    def _order(self, connection) -> None:
        for _ in range(self.random.randint(1, 3)):
            values = (self.next_id, self.random.randint(1, 6), self._amount())
            connection.execute("INSERT INTO orders VALUES (%s, %s, %s)", values)
            self.next_id += 1

    def _change(self, connection) -> None:
        some = [r[0] for r in connection.execute("SELECT id FROM orders ORDER BY id").fetchall()]
        changed = self.random.choice(some)
        connection.execute(
            "UPDATE orders SET customer = %s, amount = %s WHERE id = %s",
            (self.random.randint(1, 6), self._amount(), changed),
        )
        # about as many go as come once there are hundreds: later commits cost what earlier ones do
        going = 0 if len(some) <= 12 else 1 if len(some) <= FULL else 3
        for gone in self.random.sample(some, going):
            connection.execute("DELETE FROM orders WHERE id = %s", (gone,))

    def move(self, transactions: int = 2) -> None:
        """Customers move to another region, two in one transaction; one leaves and comes back."""
        with closing(sqlite3.connect(self.folder / "crm.db", timeout=30)) as connection:
            for _ in range(transactions):
                for number in self.random.sample(range(1, 6), 2):
                    region = self.random.choice(["north", "south", "west", None])
                    connection.execute("DELETE FROM customers WHERE id = ?", (number,))
                    connection.execute("INSERT INTO customers VALUES (?, ?)", (number, region))
                connection.execute("UPDATE customers SET region = region || '' WHERE id = 1")
                connection.commit()
                self._remember("crm", self.customers())

    def orders(self) -> Rows:
        with self.database.connect() as connection:
            return connection.execute("SELECT id, customer, amount FROM orders").fetchall()

    def customers(self) -> Rows:
        with closing(sqlite3.connect(self.folder / "crm.db", timeout=30)) as connection:
            return connection.execute("SELECT id, region FROM customers").fetchall()

    def expected(self, view: str, shop: int, crm: int) -> list[str]:
        """The view's rows when the sources have done so many transactions, by SQLite."""
        with closing(sqlite3.connect(":memory:")) as database:
            database.execute("CREATE TABLE orders (id, customer, amount INTEGER)")
            database.execute("CREATE TABLE customers (id, region)")
            cents = [(i, c, int(a * 100)) for i, c, a in self.states["shop"][shop]]
            database.executemany("INSERT INTO orders VALUES (?, ?, ?)", cents)
            database.executemany("INSERT INTO customers VALUES (?, ?)", self.states["crm"][crm])
            select = VIEWS[view].replace("shop.", "").replace("crm.", "")
            return sorted(map(repr, database.execute(select).fetchall()))

    def crm_state(self, found: dict[str, list[str]], shop: int) -> int | None:
        """After which transaction of the SQLite file all these views (name: rows) are right."""
        for crm in reversed(range(len(self.states["crm"]))):
            if all(rows == self.expected(view, shop, crm) for view, rows in found.items()):
                return crm
        return None

    def _remember(self, source: str, rows: Rows) -> None:
        if self.states:
            self.states[source].append([self._rows.setdefault(row, row) for row in rows])

    def _amount(self) -> Decimal:
        return Decimal(self.random.randint(1, 9999)) / 100


def new_shop(folder: Path, *, seed: int = 1, views: tuple[str, ...] = ("sold", "totals")) -> Shop:
    """A shop with some orders and customers, on a fresh database of the shared server."""
    return shop_on(fresh_database(), folder, seed=seed, views=views)


def shop_on(
    database: Database, folder: Path, *, seed: int = 1, views: tuple[str, ...] = ("sold", "totals")
) -> Shop:
    """The same on a given database."""
    (folder / "views").mkdir(parents=True)
    text = _TOML.format(url=database.url, warehouse="warehouse")
    (folder / "steadyview.toml").write_text(text)
    with database.connect() as connection:
        connection.execute(
            "CREATE TABLE orders (id int PRIMARY KEY, customer int, amount numeric(10,2))"
        )
        connection.execute("ALTER TABLE orders REPLICA IDENTITY FULL")
    with closing(sqlite3.connect(folder / "crm.db")) as connection:
        connection.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY, region TEXT)")
    shop = Shop(folder, database, random.Random(seed))
    shop.sell(4)
    shop.move(3)
    for view in views:
        shop.add_view(view)
    return shop


@pytest.fixture(name="shop")
def begun(tmp_path: Path) -> Iterator[Shop]:
    """A new shop that remembers its states from now on, gone after the test."""
    shop = new_shop(tmp_path / "shop")
    shop.begin()
    yield shop
    shop.database.drop()


def comparable(rows: list[list]) -> list[str]:
    """Rows of a view as `expected` writes them: amounts in cents."""
    return sorted(repr(tuple(_cents(value) for value in row)) for row in rows)


def _cents(value: object) -> object:
    return int(value * 100) if isinstance(value, Decimal) else value
