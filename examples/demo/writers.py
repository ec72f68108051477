"""Keeps changing both databases, as applications would: `python -m examples.demo.writers URL FILE`.

Inserts, updates, deletes, key changes, transactions over many rows, and some that are rolled back.
Runs until its standard input ends, so that it never outlives whoever started it; then prints, as
JSON, how many transactions it committed and rolled back, and when each one of PostgreSQL committed.
"""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from decimal import Decimal

import psycopg

from examples.demo.shop import CUSTOMERS, ORDERS, PRODUCTS, STATUSES, customer, insert_order

_PAUSE = {"sales": 0.04, "crm": 0.08}


class RolledBack(Exception):
    """Thrown inside a transaction that must leave no trace."""


@dataclass
class Done:
    """What was done: transactions by kind, and the time at which each xid was surely committed."""

    counts: Counter[str] = field(default_factory=Counter)
    committed: dict[int, float] = field(default_factory=dict)


def write_sales(url: str, first: int, stop: threading.Event, done: Done) -> None:
    """One application on PostgreSQL; its new orders are numbered from `first`."""
    dice = random.Random(first)
    with psycopg.connect(url) as connection:
        order = first
        while not stop.wait(dice.expovariate(1 / _PAUSE["sales"])):
            order += 1
            try:
                with connection.transaction():
                    _sales_transaction(connection, dice, order)
                    xid = connection.execute("SELECT pg_current_xact_id()::xid::text").fetchone()
                done.committed[int(xid[0])] = time.time()
                done.counts["sales"] += 1
            except (RolledBack, psycopg.errors.DeadlockDetected):
                done.counts["rolled back"] += 1


def _sales_transaction(connection: psycopg.Connection, dice: random.Random, order: int) -> None:
    some = dice.randint(1, ORDERS)
    kind = dice.random()
    if kind < 0.35:
        insert_order(connection, dice, order)
    elif kind < 0.60:
        change = "UPDATE order_lines SET quantity = %s, product = %s WHERE order_id = %s"
        connection.execute(change, (dice.randint(1, 9), dice.choice(PRODUCTS), some))
    elif kind < 0.75:
        change = "UPDATE orders SET customer_id = %s, status = %s WHERE id = %s"
        connection.execute(change, (dice.randint(1, CUSTOMERS), dice.choice(STATUSES), some))
    elif kind < 0.85:
        connection.execute("DELETE FROM order_lines WHERE order_id = %s", (some,))
        connection.execute("DELETE FROM orders WHERE id = %s", (some,))
    elif kind < 0.93:
        _reprice(connection, dice)
    else:
        insert_order(connection, dice, order)
        raise RolledBack


def _reprice(connection: psycopg.Connection, dice: random.Random) -> None:
    """Many rows in one transaction, and keys that change: an order is renumbered."""
    product, factor = dice.choice(PRODUCTS), dice.choice((Decimal("0.9"), Decimal("1.1")))
    change = (
        "UPDATE order_lines SET price = round(price * %s, 2)"
        " WHERE product = %s AND price < 500 AND order_id %% 20 = %s"
    )
    connection.execute(change, (factor, product, dice.randint(0, 19)))
    old, new = dice.randint(1, ORDERS), -dice.randint(1, 10**9)
    connection.execute("UPDATE orders SET id = %s WHERE id = %s", (new, old))
    connection.execute("UPDATE order_lines SET order_id = %s WHERE order_id = %s", (new, old))


def write_crm(path: str, seed: int, stop: threading.Event, done: Done) -> None:
    """The application on SQLite."""
    dice = random.Random(seed)
    with closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as database:
        while not stop.wait(dice.expovariate(1 / _PAUSE["crm"])):
            database.execute("BEGIN IMMEDIATE")
            _crm_transaction(database, dice)
            back = dice.random() < 0.05
            database.execute("ROLLBACK" if back else "COMMIT")
            done.counts["rolled back" if back else "crm"] += 1


def _crm_transaction(database: sqlite3.Connection, dice: random.Random) -> None:
    some, other = dice.sample(range(1, CUSTOMERS + 1), 2)
    kind = dice.random()
    _, _, region, segment = customer(dice, some)
    if kind < 0.6:
        change = "UPDATE customers SET region = ?, segment = ? WHERE id = ?"
        database.execute(change, (region, segment, some))
    elif kind < 0.75:
        database.execute("DELETE FROM customers WHERE id = ?", (some,))
    elif kind < 0.9:
        change = "INSERT OR REPLACE INTO customers VALUES (?, ?, ?, ?)"
        database.execute(change, customer(dice, some))
    else:
        # Two customers change numbers, by way of a third number.
        for old, new in ((some, -1), (other, some), (-1, other)):
            database.execute("UPDATE customers SET id = ? WHERE id = ?", (new, old))


def main(url: str, path: str) -> None:
    """Write until standard input ends."""
    # Ctrl-C reaches the whole process group; who started this one ends it by closing its input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    stop, done = threading.Event(), Done()
    with ThreadPoolExecutor() as pool:
        jobs = [
            pool.submit(write_sales, url, 1_000_000, stop, done),
            pool.submit(write_sales, url, 2_000_000, stop, done),
            pool.submit(write_crm, path, 3, stop, done),
        ]
        try:
            sys.stdin.read()
        finally:
            stop.set()
    for job in jobs:
        job.result()
    print(json.dumps({"counts": done.counts, "committed": done.committed}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
