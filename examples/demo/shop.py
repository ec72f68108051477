"""The shop: its two databases, their first rows, and the project folder that names them.

Orders and their lines are in PostgreSQL, customers in SQLite: no transaction spans the two.
"""

from __future__ import annotations

import os
import random
import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg

CUSTOMERS = 200
ORDERS = 1_000
REGIONS = ("north", "south", "east", "west", None)
SEGMENTS = ("private", "business", "public")
PRODUCTS = ("lamp", "desk", "chair", "shelf", "sofa", "rug", "clock", "mirror")
STATUSES = ("open", "packed", "sent")

_SALES = """
CREATE TABLE orders (id bigint PRIMARY KEY, customer_id bigint, status text NOT NULL);
CREATE INDEX ON orders (customer_id);
CREATE TABLE order_lines (
    order_id bigint, line int, product text NOT NULL, quantity int NOT NULL, price numeric(10,2),
    PRIMARY KEY (order_id, line)
);
ALTER TABLE orders REPLICA IDENTITY FULL;
ALTER TABLE order_lines REPLICA IDENTITY FULL;
"""
_CRM = """
PRAGMA journal_mode = WAL;
CREATE TABLE customers (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, region TEXT, segment TEXT NOT NULL
);
"""
_PROJECT = """\
# The project that `make demo` left behind.
# Its PostgreSQL is stopped; ./start-postgres.sh starts it again. Reading views needs no source.

[project]
name = "demo"
warehouse = "warehouse"

[spark]
"spark.master" = "local[*]"

[sources.sales]
type = "postgresql"
url = "{url}"
tables = ["public.orders", "public.order_lines"]

[sources.crm]
type = "sqlite"
path = "crm.db"
tables = ["customers"]

[stores.shop_cache]
type = "sqlite"
path = "cache.db"
"""
_VIEWS = {
    "revenue_by_region": """\
CREATE MATERIALIZED VIEW revenue_by_region
TBLPROPERTIES ('steadyview.level' = 'complete', 'steadyview.serve' = 'shop_cache')
AS SELECT c.region, COUNT(*) AS lines, SUM(l.price * l.quantity) AS revenue
   FROM sales.orders o
   JOIN sales.order_lines l ON l.order_id = o.id
   JOIN crm.customers c ON c.id = o.customer_id
   GROUP BY c.region
""",
    "open_order_lines": """\
-- An order stays when its customer is not there (any more).
SELECT o.id AS order_id, c.name AS customer, c.region, l.product, l.quantity, l.price
FROM sales.orders o
JOIN sales.order_lines l ON l.order_id = o.id
LEFT JOIN crm.customers c ON c.id = o.customer_id
WHERE o.status = 'open' AND l.quantity > 1
""",
    "open_value_by_region": """\
-- A view on a view.
SELECT region, COUNT(*) AS lines, SUM(price * quantity) AS value
FROM open_order_lines
GROUP BY region
""",
    "basket_by_segment": """\
SELECT c.segment, l.product, COUNT(l.price) AS priced, AVG(l.quantity) AS average_quantity
FROM sales.orders o
JOIN sales.order_lines l ON l.order_id = o.id
JOIN crm.customers c ON c.id = o.customer_id
GROUP BY c.segment, l.product
""",
}
_START_POSTGRES = """\
#!/bin/sh
# Start the demo's PostgreSQL again; it runs until Ctrl-C.
folder=$(cd "$(dirname "$0")" && pwd)
cd {root} && exec {python} -m examples.demo.serve "$folder/postgres"
"""


def create_sales(url: str, seed: int) -> None:
    """The PostgreSQL side: orders and their lines."""
    dice = random.Random(seed)
    with psycopg.connect(url) as connection:
        connection.execute(_SALES)
        for order in range(1, ORDERS + 1):
            insert_order(connection, dice, order)


def insert_order(connection: psycopg.Connection, dice: random.Random, order: int) -> None:
    """One order with one to four lines, in the transaction at hand."""
    connection.execute(
        "INSERT INTO orders VALUES (%s, %s, %s)",
        (order, dice.randint(1, CUSTOMERS), dice.choice(STATUSES)),
    )
    for line in range(dice.randint(1, 4)):
        price = None if dice.random() < 0.02 else round(dice.uniform(1, 500), 2)
        connection.execute(
            "INSERT INTO order_lines VALUES (%s, %s, %s, %s, %s)",
            (order, line, dice.choice(PRODUCTS), dice.randint(1, 9), price),
        )


def create_crm(path: Path, seed: int) -> None:
    """The SQLite side: customers."""
    dice = random.Random(seed)
    with closing(sqlite3.connect(path)) as database:
        database.executescript(_CRM)
        database.executemany(
            "INSERT INTO customers VALUES (?, ?, ?, ?)",
            [customer(dice, number) for number in range(1, CUSTOMERS + 1)],
        )
        database.commit()


def customer(dice: random.Random, number: int) -> tuple[int, str, str | None, str]:
    """A customer with this number, otherwise drawn."""
    return number, f"customer {number}", dice.choice(REGIONS), dice.choice(SEGMENTS)


def under_policy(name: str, policy: str) -> str:
    """The first view's text under another name and policy."""
    _, _, select = _VIEWS["revenue_by_region"].partition("AS SELECT")
    properties = f"TBLPROPERTIES ('steadyview.policy' = '{policy}')"
    return f"CREATE MATERIALIZED VIEW {name}\n{properties}\nAS SELECT{select}"


def create_project(folder: Path, url: str, python: str) -> None:
    """The project's files: steadyview.toml, views, and a script that starts PostgreSQL again."""
    (folder / "views").mkdir(parents=True)
    (folder / "steadyview.toml").write_text(_PROJECT.format(url=url))
    for name, text in _VIEWS.items():
        (folder / "views" / f"{name}.sql").write_text(text)
    script = folder / "start-postgres.sh"
    root = f"'{Path.cwd()}'"
    script.write_text(_START_POSTGRES.format(root=root, python=f"'{python}'"))
    os.chmod(script, 0o755)
