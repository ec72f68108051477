"""A store over a PostgreSQL database and a SQLite file, whose every state is remembered.

Each transaction of a database ends by raising its number in the table `progress`, whose row it then
holds until it is committed: numbers follow the order of commits. What the transaction sees then is
the state after it, and is remembered under its number. The view `progress` says of every cn which
numbers it shows, so the tables at a cn are known without the product's log. Assumes: nobody else
writes.
"""

from __future__ import annotations

import pickle
import random
import zlib
from collections.abc import Mapping
from pathlib import Path

from tests.system.databases import (
    LiveDatabase,
    PostgresDatabase,
    SqliteFile,
    Writer,
    write_project,
)
from tests.system.writers import Change, Writers

VIEWS = Path(__file__).parent / "views"
TABLES = {
    "shop": {
        "orders": "id bigint PRIMARY KEY, customer bigint, channel text, placed date",
        "lines": "order_id bigint, product bigint, quantity int, price numeric(10,2)",
        "payments": "order_id bigint, amount numeric(10,2), method text",
        "progress": "n bigint",
    },
    "crm": {
        "customers": "id INTEGER PRIMARY KEY, region TEXT, brought_by INTEGER",
        "products": "id INTEGER, kind TEXT, stock INTEGER",
        "complaints": "customer INTEGER, product INTEGER, severity INTEGER",
        "progress": "n INTEGER",
    },
}
ORDERS, CUSTOMERS, PRODUCTS = 70, 45, 12
REGIONS, KINDS = ("north", "south", "west", None), ("desk", "lamp", "chair", None)
CHANNELS, METHODS = ("web", "web", "store", None), ("card", "cash", None)
PRICES = ("2.50", "5.00", "10.00", "19.99", "25.00", None)
AT = ("shop", "shop", "crm", "crm")
PAUSE = 1.5
SPARK = """
[spark]
"spark.master" = "local[2]"
"spark.driver.memory" = "1g"
"spark.driver.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"spark.sql.shuffle.partitions" = "2"
"""
Tables = Mapping[str, list[tuple]]
"""The rows of each table of a source."""


class Store:
    """The databases, the project folder over them, and every state they were in."""

    def __init__(self, folder: Path) -> None:
        self.sources: dict[str, LiveDatabase] = {
            "shop": PostgresDatabase(),
            "crm": SqliteFile(folder / "crm.db"),
        }
        for source, tables in TABLES.items():
            for table, columns in tables.items():
                self.sources[source].create(table, columns)
        self._states: dict[str, dict[int, bytes]] = {source: {} for source in TABLES}
        self._fill(random.Random(0))
        texts = {path.stem: path.read_text() for path in VIEWS.iterdir()}
        self.folder = write_project(folder / "project", self.sources, texts)
        with (self.folder / "steadyview.toml").open("a") as settings:
            settings.write(SPARK)

    @property
    def warehouse(self) -> Path:
        return self.folder / "warehouse"

    def file(self, view: str) -> Path:
        return self.folder / "views" / f"{view}.sql"

    def writers(self) -> Writers:
        return Writers(self.sources, CHANGES, AT, self._remember, PAUSE)

    def tables(self, source: str, number: int) -> Tables:
        """What the source held after its transaction of that number."""
        return pickle.loads(zlib.decompress(self._states[source][number]))

    def close(self) -> None:
        for database in self.sources.values():
            database.close()

    def _fill(self, luck: random.Random) -> None:
        for source, fill in {"shop": _fill_shop, "crm": _fill_crm}.items():
            with self.sources[source].writer().transaction() as writer:
                writer.execute("INSERT INTO progress VALUES (0)")
                fill(writer, luck)
                self._remember(source, writer)
        # as spans are cut by what the server believes to be there
        self.sources["shop"].writer().execute("ANALYZE")

    def _remember(self, source: str, writer: Writer) -> None:
        writer.execute("UPDATE progress SET n = n + 1")
        tables = {table: writer.execute(f"SELECT * FROM {table}") for table in TABLES[source]}
        ((number,),) = tables["progress"]
        self._states[source][number] = zlib.compress(pickle.dumps(tables))


def _fill_shop(writer: Writer, luck: random.Random) -> None:
    for number in range(ORDERS):
        _insert_order(writer, luck, number)
        _insert_payment(writer, luck)
    for _ in range(2 * ORDERS):
        _insert_line(writer, luck)


def _fill_crm(writer: Writer, luck: random.Random) -> None:
    for number in range(CUSTOMERS):
        _insert_customer(writer, luck, number)
    for number in range(PRODUCTS):
        _insert_product(writer, luck, number)
    for _ in range(4 * PRODUCTS):
        _complain(writer, luck)


# --- PostgreSQL ----------------------------------------------------------------------------


def _insert_order(writer: Writer, luck: random.Random, number: int) -> None:
    customer, day = luck.choice([None, *range(CUSTOMERS)]), luck.randint(1, 28)
    values = (number, customer, luck.choice(CHANNELS), f"2026-01-{day:02}")
    writer.execute("INSERT INTO orders VALUES (?, ?, ?, ?)", *values)


def _replace_order(writer: Writer, luck: random.Random) -> None:
    number = luck.randrange(ORDERS)
    writer.execute("DELETE FROM orders WHERE id = ?", number)
    if luck.random() < 0.9:
        _insert_order(writer, luck, number)


def _renumber_order(writer: Writer, luck: random.Random) -> None:
    new, old = luck.randrange(ORDERS), luck.randrange(ORDERS)
    writer.execute("DELETE FROM orders WHERE id = ? AND id <> ?", new, old)
    writer.execute("UPDATE orders SET id = ? WHERE id = ?", new, old)


def _change_order(writer: Writer, luck: random.Random) -> None:
    customer, channel = luck.choice([None, *range(CUSTOMERS)]), luck.choice(CHANNELS)
    set_ = "UPDATE orders SET customer = ?, channel = ? WHERE id = ?"
    writer.execute(set_, customer, channel, luck.randrange(ORDERS))


def _order_with_lines(writer: Writer, luck: random.Random) -> None:
    """An order comes with its lines and its payment: one transaction, three tables."""
    number = luck.randrange(ORDERS)
    writer.execute("DELETE FROM orders WHERE id = ?", number)
    writer.execute("DELETE FROM lines WHERE order_id = ?", number)
    _insert_order(writer, luck, number)
    for _ in range(luck.randint(1, 3)):
        _insert_line(writer, luck, number)
    _insert_payment(writer, luck, number)


def _insert_line(writer: Writer, luck: random.Random, number: int | None = None) -> None:
    order = luck.randrange(ORDERS) if number is None else number
    values = (order, luck.randrange(PRODUCTS), luck.randint(1, 3), luck.choice(PRICES))
    for _ in range(luck.choice([1, 1, 2])):
        writer.execute("INSERT INTO lines VALUES (?, ?, ?, ?)", *values)


def _delete_lines(writer: Writer, luck: random.Random) -> None:
    writer.execute("DELETE FROM lines WHERE order_id = ?", luck.randrange(ORDERS))


def _change_lines(writer: Writer, luck: random.Random) -> None:
    values = (luck.randrange(PRODUCTS), luck.choice(PRICES), luck.randrange(ORDERS))
    writer.execute("UPDATE lines SET product = ?, price = ? WHERE order_id = ?", *values)


def _lose_product(writer: Writer, luck: random.Random) -> None:
    """A line without a product comes, or all of them go."""
    writer.execute("DELETE FROM lines WHERE product IS NULL")
    if luck.random() < 0.5:
        writer.execute("INSERT INTO lines VALUES (?, NULL, 3, 25.00)", luck.randrange(ORDERS))


def _insert_payment(writer: Writer, luck: random.Random, number: int | None = None) -> None:
    order = luck.choice([None, *range(ORDERS)]) if number is None else number
    values = (order, luck.choice(PRICES), luck.choice(METHODS))
    writer.execute("INSERT INTO payments VALUES (?, ?, ?)", *values)


def _take_back_payments(writer: Writer, luck: random.Random) -> None:
    first = luck.randrange(ORDERS)
    writer.execute("DELETE FROM payments WHERE order_id BETWEEN ? AND ?", first, first + 2)
    writer.execute("DELETE FROM payments WHERE order_id IS NULL")


# --- SQLite --------------------------------------------------------------------------------


def _insert_customer(writer: Writer, luck: random.Random, number: int) -> None:
    brought_by = luck.choice([None, luck.randrange(CUSTOMERS)])
    values = (number, luck.choice(REGIONS), brought_by)
    writer.execute("INSERT INTO customers VALUES (?, ?, ?)", *values)


def _replace_customer(writer: Writer, luck: random.Random) -> None:
    number = luck.randrange(CUSTOMERS)
    writer.execute("DELETE FROM customers WHERE id = ?", number)
    if luck.random() < 0.9:
        _insert_customer(writer, luck, number)


def _renumber_customer(writer: Writer, luck: random.Random) -> None:
    new, old = luck.randrange(CUSTOMERS), luck.randrange(CUSTOMERS)
    writer.execute("UPDATE OR REPLACE customers SET id = ? WHERE id = ?", new, old)


def _change_customer(writer: Writer, luck: random.Random) -> None:
    values = (luck.choice(REGIONS), luck.choice([None, *range(CUSTOMERS)]))
    set_ = "UPDATE customers SET region = ?, brought_by = ? WHERE id = ?"
    writer.execute(set_, *values, luck.randrange(CUSTOMERS))


def _insert_product(writer: Writer, luck: random.Random, number: int) -> None:
    values = (number, luck.choice(KINDS), luck.choice([None, 0, 2, 100]))
    writer.execute("INSERT INTO products VALUES (?, ?, ?)", *values)


def _replace_product(writer: Writer, luck: random.Random) -> None:
    """Now and then a number is given twice."""
    number = luck.randrange(PRODUCTS)
    writer.execute("DELETE FROM products WHERE id = ?", number)
    for _ in range(luck.choice([0, 1, 1, 1, 2])):
        _insert_product(writer, luck, number)


def _change_stock(writer: Writer, luck: random.Random) -> None:
    stock, product = luck.choice([None, 0, 1, 3]), luck.randrange(PRODUCTS)
    writer.execute("UPDATE products SET stock = ? WHERE id = ?", stock, product)


def _complain(writer: Writer, luck: random.Random) -> None:
    customer, product = luck.randrange(CUSTOMERS), luck.choice([None, *range(PRODUCTS)])
    values = (customer, product, luck.choice([None, 1, 2, 3, 4]))
    writer.execute("INSERT INTO complaints VALUES (?, ?, ?)", *values)


def _settle_complaints(writer: Writer, luck: random.Random) -> None:
    first, product = luck.randrange(CUSTOMERS), luck.randrange(PRODUCTS)
    writer.execute("DELETE FROM complaints WHERE customer BETWEEN ? AND ?", first, first + 2)
    writer.execute("UPDATE complaints SET severity = severity - 1 WHERE product = ?", product)


CHANGES: Mapping[str, list[Change]] = {
    "shop": [
        _replace_order,
        _renumber_order,
        _change_order,
        _order_with_lines,
        _insert_line,
        _insert_line,
        _insert_line,
        _delete_lines,
        _change_lines,
        _lose_product,
        _insert_payment,
        _insert_payment,
        _take_back_payments,
    ],
    "crm": [
        _replace_customer,
        _renumber_customer,
        _change_customer,
        _replace_product,
        _change_stock,
        _complain,
        _complain,
        _settle_complaints,
    ],
}
