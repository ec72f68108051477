"""A shop over three databases, and what its writers do to all of them at once."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from steadyview.algebra import Bag, Row
from tests.system.databases import LiveDatabase, PostgresDatabase, SqliteFile, Writer
from tests.system.writers import Change

JOIN = """FROM sales.lines l JOIN sales.orders o ON o.id = l.order_id
JOIN stock.products p ON p.id = l.product JOIN crm.customers c ON c.id = o.customer"""
VIEWS = {
    "sold": f"SELECT c.region, p.kind, l.quantity, l.price {JOIN}",
    "by_region": f"""SELECT c.region, p.kind, COUNT(*) AS n, SUM(l.price) AS total,
        AVG(l.quantity) AS average {JOIN} GROUP BY c.region, p.kind""",
    "bosses": """SELECT a.region, b.region AS boss FROM crm.customers a
        JOIN crm.customers b ON b.id = a.boss AND a.id <> b.id""",
}
TABLES = {
    "sales": {
        "orders": "id bigint, customer bigint",
        "lines": "order_id bigint, product bigint, quantity int, price numeric(10,2)",
    },
    "stock": {"products": "id bigint, kind text"},
    "crm": {"customers": "id bigint, region text, boss bigint"},
}
CUSTOMERS, PRODUCTS, ORDERS = 12, 8, 30
REGIONS, KINDS = ("north", "south", None), ("desk", "lamp", None)


class Shop:
    """The databases with their first rows."""

    def __init__(self, folder: Path) -> None:
        self.sources: dict[str, LiveDatabase] = {
            "sales": PostgresDatabase(),
            "stock": PostgresDatabase(),
            "crm": SqliteFile(folder / "crm.db"),
        }
        for source, tables in TABLES.items():
            for table, columns in tables.items():
                self.sources[source].create(table, columns)
        luck = random.Random(0)
        for source, change in _FILL.items():
            with self.sources[source].writer().transaction() as writer:
                change(writer, luck)

    def truth(self, sql: str) -> Bag[Row]:
        """The query over the live tables as they are, by an in-memory SQLite; money in cents."""
        with closing(sqlite3.connect(":memory:")) as memory:
            for source, tables in TABLES.items():
                memory.execute(f"ATTACH ':memory:' AS {source}")
                for table in tables:
                    rows = self.sources[source].writer().execute(f"SELECT * FROM {table}")
                    self._load(memory, f"{source}.{table}", rows)
            return Bag.of(memory.execute(sql))

    def _load(self, memory: sqlite3.Connection, table: str, rows: list[Row]) -> None:
        source, name = table.split(".")
        columns = [c.split()[0] for c in TABLES[source][name].split(", ")]
        memory.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
        whole = [
            [
                int(v * 100) if c == "price" and v is not None else v
                for c, v in zip(columns, row, strict=True)
            ]
            for row in rows
        ]
        memory.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(columns))})", whole)

    def close(self) -> None:
        for database in self.sources.values():
            database.close()


def _fill_sales(writer: Writer, luck: random.Random) -> None:
    for number in range(ORDERS):
        writer.execute("INSERT INTO orders VALUES (?, ?)", number, luck.randrange(CUSTOMERS))
        for _ in range(3):
            _insert_line(writer, luck)


def _fill_stock(writer: Writer, luck: random.Random) -> None:
    for number in range(PRODUCTS):
        writer.execute("INSERT INTO products VALUES (?, ?)", number, luck.choice(KINDS))


def _fill_crm(writer: Writer, luck: random.Random) -> None:
    for number in range(CUSTOMERS):
        _insert_customer(writer, luck, number)


def _insert_customer(writer: Writer, luck: random.Random, number: int) -> None:
    boss = luck.choice([None, luck.randrange(CUSTOMERS)])
    writer.execute("INSERT INTO customers VALUES (?, ?, ?)", number, luck.choice(REGIONS), boss)


def _insert_line(writer: Writer, luck: random.Random) -> None:
    price = luck.choice([None, "2.50", "10.00"])
    values = (luck.randrange(ORDERS), luck.randrange(PRODUCTS), luck.randint(1, 2), price)
    for _ in range(luck.choice([1, 1, 2])):
        writer.execute("INSERT INTO lines VALUES (?, ?, ?, ?)", *values)


def _delete_lines(writer: Writer, luck: random.Random) -> None:
    writer.execute("DELETE FROM lines WHERE order_id = ?", luck.randrange(ORDERS))


def _move_line(writer: Writer, luck: random.Random) -> None:
    product, order = luck.randrange(PRODUCTS), luck.randrange(ORDERS)
    writer.execute("UPDATE lines SET product = ? WHERE order_id = ?", product, order)


def _change_customer_of(writer: Writer, luck: random.Random) -> None:
    customer, order = luck.choice([None, *range(CUSTOMERS)]), luck.randrange(ORDERS)
    writer.execute("UPDATE orders SET customer = ? WHERE id = ?", customer, order)


def _renumber_order(writer: Writer, luck: random.Random) -> None:
    new, old = luck.randrange(ORDERS), luck.randrange(ORDERS)
    writer.execute("UPDATE orders SET id = ? WHERE id = ?", new, old)


def _replace_order(writer: Writer, luck: random.Random) -> None:
    number = luck.randrange(ORDERS)
    writer.execute("DELETE FROM orders WHERE id = ?", number)
    writer.execute("INSERT INTO orders VALUES (?, ?)", number, luck.randrange(CUSTOMERS))


def _change_kind(writer: Writer, luck: random.Random) -> None:
    kind, product = luck.choice(KINDS), luck.randrange(PRODUCTS)
    writer.execute("UPDATE products SET kind = ? WHERE id = ?", kind, product)


def _replace_product(writer: Writer, luck: random.Random) -> None:
    number = luck.randrange(PRODUCTS)
    writer.execute("DELETE FROM products WHERE id = ?", number)
    if luck.random() < 0.8:
        writer.execute("INSERT INTO products VALUES (?, ?)", number, luck.choice(KINDS))


def _change_boss(writer: Writer, luck: random.Random) -> None:
    boss, customer = luck.choice([None, *range(CUSTOMERS)]), luck.randrange(CUSTOMERS)
    writer.execute("UPDATE customers SET boss = ? WHERE id = ?", boss, customer)


def _move_region(writer: Writer, luck: random.Random) -> None:
    old, new = luck.randrange(CUSTOMERS), luck.choice(REGIONS)
    writer.execute("UPDATE customers SET region = ? WHERE id = ?", new, old)


def _replace_customer(writer: Writer, luck: random.Random) -> None:
    number = luck.randrange(CUSTOMERS)
    writer.execute("DELETE FROM customers WHERE id = ?", number)
    _insert_customer(writer, luck, number)


_FILL: Mapping[str, Change] = {"sales": _fill_sales, "stock": _fill_stock, "crm": _fill_crm}
WRITERS = ("sales", "sales", "stock", "crm", "crm")
CHANGES: Mapping[str, list[Change]] = {
    "sales": [
        _insert_line,
        _insert_line,
        _delete_lines,
        _move_line,
        _change_customer_of,
        _renumber_order,
        _replace_order,
    ],
    "stock": [_change_kind, _replace_product],
    "crm": [_change_boss, _move_region, _replace_customer],
}
