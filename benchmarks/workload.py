"""The changes: thousands of small transactions, made at the source by procedures that commit.

    mixed     insert, update or delete an order with its lines (1 : 4 rows, as in the tables), and
              customers in proportion; every row is touched at most once in a run
    hot       n transactions: update one order's status, insert a line of it
    spread    the same, each transaction at an order of its own
    hot_kept / spread_kept   update an order's date (a column of the views), insert a line of it,
              delete another

Which rows are touched follows from the batch's number alone.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import psycopg

from benchmarks.tpch import Databases

PICKS = 400_000
_NEW = 1_000_000_000
"""Where the keys of inserted orders and customers begin."""

_SALES = f"""
CREATE SCHEMA bench;
CREATE TABLE bench.pick AS SELECT row_number() OVER () AS n, o_orderkey FROM (
    SELECT o_orderkey FROM orders ORDER BY hashint8(o_orderkey), o_orderkey LIMIT {PICKS}) AS o;
ALTER TABLE bench.pick ADD PRIMARY KEY (n);

CREATE FUNCTION bench.picked(i bigint) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE k bigint;
BEGIN
    SELECT o_orderkey INTO STRICT k FROM bench.pick WHERE n = i;
    RETURN k;
END $$;

CREATE PROCEDURE bench.inserted(i bigint, INOUT changes bigint) LANGUAGE plpgsql AS $$
DECLARE k bigint := bench.picked(i); n bigint;
BEGIN
    INSERT INTO orders SELECT {_NEW} + i, o_custkey, o_orderstatus, o_totalprice, o_orderdate,
        o_orderpriority, o_clerk, o_shippriority, o_comment FROM orders WHERE o_orderkey = k;
    INSERT INTO lineitem SELECT {_NEW} + i, l_partkey, l_suppkey, l_linenumber, l_quantity,
        l_extendedprice, l_discount, l_tax, l_returnflag, l_linestatus, l_shipdate, l_commitdate,
        l_receiptdate, l_shipinstruct, l_shipmode, l_comment FROM lineitem WHERE l_orderkey = k;
    GET DIAGNOSTICS n = ROW_COUNT;
    changes := changes + n + 1;
END $$;

CREATE PROCEDURE bench.updated(i bigint, INOUT changes bigint) LANGUAGE plpgsql AS $$
DECLARE k bigint := bench.picked(i); n bigint;
BEGIN
    UPDATE orders SET o_orderdate = o_orderdate + 1 WHERE o_orderkey = k;
    UPDATE lineitem SET l_extendedprice = l_extendedprice + 1 WHERE l_orderkey = k;
    GET DIAGNOSTICS n = ROW_COUNT;
    changes := changes + n + 1;
END $$;

CREATE PROCEDURE bench.deleted(i bigint, INOUT changes bigint) LANGUAGE plpgsql AS $$
DECLARE k bigint := bench.picked(i); n bigint;
BEGIN
    DELETE FROM lineitem WHERE l_orderkey = k;
    GET DIAGNOSTICS n = ROW_COUNT;
    DELETE FROM orders WHERE o_orderkey = k;
    changes := changes + n + 1;
END $$;

CREATE PROCEDURE bench.mixed(INOUT i bigint, wanted bigint, INOUT changes bigint)
LANGUAGE plpgsql AS $$
BEGIN
    changes := 0;
    WHILE changes < wanted LOOP
        IF i % 3 = 0 THEN CALL bench.inserted(i, changes);
        ELSIF i % 3 = 1 THEN CALL bench.updated(i, changes);
        ELSE CALL bench.deleted(i, changes);
        END IF;
        COMMIT;
        i := i + 1;
    END LOOP;
END $$;

CREATE PROCEDURE bench.line(k bigint, number int) LANGUAGE sql AS $$
    INSERT INTO lineitem SELECT k, 1, 1, number, 3, 1000 + number, 0.05, 0.02, 'N', 'O',
        '1998-01-01', '1998-01-02', '1998-01-03', 'NONE', 'MAIL', 'a line of a benchmark'
$$;

CREATE PROCEDURE bench.partners(INOUT i bigint, n bigint, spread bigint, kept boolean)
LANGUAGE plpgsql AS $$
DECLARE k bigint;
BEGIN
    FOR t IN 0 .. n - 1 LOOP
        k := bench.picked(i + t * spread);
        IF kept THEN
            UPDATE orders SET o_orderdate = o_orderdate + CASE WHEN t % 2 = 0 THEN 1 ELSE -1 END
                WHERE o_orderkey = k;
            DELETE FROM lineitem WHERE l_orderkey = k
                AND l_linenumber = CASE WHEN spread = 0 THEN 1000 + t - 1 ELSE 1 END;
        ELSE
            UPDATE orders SET o_orderstatus = CASE WHEN t % 2 = 0 THEN 'A' ELSE 'B' END
                WHERE o_orderkey = k;
        END IF;
        CALL bench.line(k, (1000 + t)::int);
        COMMIT;
    END LOOP;
    i := i + (n - 1) * spread + 1;
END $$;
"""

_CRM = f"""
CREATE SCHEMA bench;
CREATE TABLE bench.pick AS SELECT row_number() OVER () AS n, c_custkey FROM (
    SELECT c_custkey FROM customer ORDER BY hashint8(c_custkey), c_custkey) AS c;
ALTER TABLE bench.pick ADD PRIMARY KEY (n);

CREATE PROCEDURE bench.mixed(INOUT i bigint, wanted bigint, INOUT changes bigint)
LANGUAGE plpgsql AS $$
DECLARE k bigint;
BEGIN
    changes := 0;
    WHILE changes < wanted LOOP
        SELECT c_custkey INTO STRICT k FROM bench.pick WHERE n = i;
        IF i % 3 = 0 THEN
            INSERT INTO customer SELECT {_NEW} + i, c_name, c_address, c_nationkey, c_phone,
                c_acctbal, c_mktsegment, c_comment FROM customer WHERE c_custkey = k;
        ELSIF i % 3 = 1 THEN
            UPDATE customer SET c_nationkey = (c_nationkey + 1) % 25 WHERE c_custkey = k;
        ELSE
            DELETE FROM customer WHERE c_custkey = k;
        END IF;
        COMMIT;
        changes := changes + 1;
        i := i + 1;
    END LOOP;
END $$;
"""

CUSTOMER_SHARE = 150 / 7_650


@dataclass
class Workload:
    """Commits batches at one site; remembers which rows are used up."""

    databases: Databases
    _sales: int = field(default=1, init=False)
    _crm: int = field(default=1, init=False)

    def prepare(self) -> None:
        """Install the procedures."""
        for role, text in (("sales", _SALES), ("crm", _CRM)):
            with self.databases.connect(role) as connection:
                connection.execute(text)

    def mixed(self, wanted: int) -> int:
        """About `wanted` row changes in both databases at once; how many there were."""
        customers = max(round(wanted * CUSTOMER_SHARE), 1)
        with ThreadPoolExecutor(max_workers=2) as pool:
            crm = pool.submit(self._mixed, "crm", self._crm, customers)
            sales = pool.submit(self._mixed, "sales", self._sales, wanted - customers)
            self._sales, lines = sales.result()
            self._crm, people = crm.result()
        return lines + people

    def _mixed(self, role: str, first: int, wanted: int) -> tuple[int, int]:
        call = "CALL bench.mixed(%s::bigint, %s::bigint, 0::bigint)"
        return self._called(role, lambda c: c.execute(call, [first, wanted]))

    def hot(self, transactions: int, *, kept: bool = False) -> int:
        """All at one order."""
        return self._partners(transactions, 0, kept)

    def spread(self, transactions: int, *, kept: bool = False) -> int:
        """The same, without skew."""
        return self._partners(transactions, 1, kept)

    def _partners(self, transactions: int, spread: int, kept: bool) -> int:
        call = "CALL bench.partners(%s::bigint, %s::bigint, %s::bigint, %s)"
        values = [self._sales, transactions, spread, kept]
        (self._sales,) = self._called("sales", lambda c: c.execute(call, values))
        return transactions * (3 if kept else 2)

    def _called(
        self, role: str, call: Callable[[psycopg.Connection], psycopg.Cursor]
    ) -> tuple[int, ...]:
        with self.databases.connect(role) as connection:
            row = call(connection).fetchone()
        assert row is not None
        return row
