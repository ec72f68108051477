"""The 22 queries of TPC-H with the parameters of its validation runs, and how they are kept.

Left out of all: ORDER BY and LIMIT (a view's rows have no order; sort and cut when you read it).
`kept` is the text that is kept as a view, where that is another one, and `rewrite` says what was
written otherwise. Both give the same rows: the benchmark compares them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Query:
    """One of the 22; `{scale}` in a text is the scale factor."""

    text: str
    kept: str = ""
    rewrite: str = ""

    def view(self, scale: float) -> str:
        """What is kept."""
        return (self.kept or self.text).replace("{scale}", f"{scale:g}")

    def query(self, scale: float) -> str:
        """What TPC-H asks."""
        return self.text.replace("{scale}", f"{scale:g}")


QUERIES = {
    "q01": Query("""
SELECT l_returnflag, l_linestatus, SUM(l_quantity) AS sum_qty,
       SUM(l_extendedprice) AS sum_base_price,
       SUM(l_extendedprice * (1 - l_discount)) AS sum_disc_price,
       SUM(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge,
       AVG(l_quantity) AS avg_qty, AVG(l_extendedprice) AS avg_price, AVG(l_discount) AS avg_disc,
       COUNT(*) AS count_order
FROM sales.lineitem
WHERE l_shipdate <= DATE '1998-12-01' - INTERVAL '90' DAY
GROUP BY l_returnflag, l_linestatus
"""),
    "q02": Query(
        """
SELECT s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
FROM stock.part, stock.supplier, stock.partsupp, crm.nation, crm.region
WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND p_size = 15 AND p_type LIKE '%BRASS'
      AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'EUROPE'
      AND ps_supplycost = (
          SELECT MIN(ps_supplycost)
          FROM stock.partsupp, stock.supplier, crm.nation, crm.region
          WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND s_nationkey = n_nationkey
                AND n_regionkey = r_regionkey AND r_name = 'EUROPE')
""",
        """
SELECT s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
FROM stock.part, stock.supplier, stock.partsupp, crm.nation, crm.region,
     (SELECT ps_partkey AS least_partkey, MIN(ps_supplycost) AS least_cost
      FROM stock.partsupp, stock.supplier, crm.nation, crm.region
      WHERE s_suppkey = ps_suppkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey
            AND r_name = 'EUROPE'
      GROUP BY ps_partkey) AS least
WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND p_size = 15 AND p_type LIKE '%BRASS'
      AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'EUROPE'
      AND p_partkey = least_partkey AND ps_supplycost = least_cost
""",
        "subquery as a value: joined as a grouped query",
    ),
    "q03": Query("""
SELECT l_orderkey, SUM(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority
FROM crm.customer, sales.orders, sales.lineitem
WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
      AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
GROUP BY l_orderkey, o_orderdate, o_shippriority
"""),
    "q04": Query("""
SELECT o_orderpriority, COUNT(*) AS order_count
FROM sales.orders
WHERE o_orderdate >= DATE '1993-07-01' AND o_orderdate < DATE '1993-07-01' + INTERVAL '3' MONTH
      AND EXISTS (SELECT * FROM sales.lineitem
                  WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
GROUP BY o_orderpriority
"""),
    "q05": Query("""
SELECT n_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue
FROM crm.customer, sales.orders, sales.lineitem, stock.supplier, crm.nation, crm.region
WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey
      AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey
      AND r_name = 'ASIA' AND o_orderdate >= DATE '1994-01-01'
      AND o_orderdate < DATE '1994-01-01' + INTERVAL '1' YEAR
GROUP BY n_name
"""),
    "q06": Query("""
SELECT SUM(l_extendedprice * l_discount) AS revenue
FROM sales.lineitem
WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1994-01-01' + INTERVAL '1' YEAR
      AND l_discount BETWEEN 0.06 - 0.01 AND 0.06 + 0.01 AND l_quantity < 24
"""),
    "q07": Query("""
SELECT supp_nation, cust_nation, l_year, SUM(volume) AS revenue
FROM (SELECT n1.n_name AS supp_nation, n2.n_name AS cust_nation,
             EXTRACT(YEAR FROM l_shipdate) AS l_year,
             l_extendedprice * (1 - l_discount) AS volume
      FROM stock.supplier, sales.lineitem, sales.orders, crm.customer, crm.nation n1, crm.nation n2
      WHERE s_suppkey = l_suppkey AND o_orderkey = l_orderkey AND c_custkey = o_custkey
            AND s_nationkey = n1.n_nationkey AND c_nationkey = n2.n_nationkey
            AND ((n1.n_name = 'FRANCE' AND n2.n_name = 'GERMANY')
                 OR (n1.n_name = 'GERMANY' AND n2.n_name = 'FRANCE'))
            AND l_shipdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31') AS shipping
GROUP BY supp_nation, cust_nation, l_year
"""),
    "q08": Query("""
SELECT o_year, SUM(CASE WHEN nation = 'BRAZIL' THEN volume ELSE 0 END) / SUM(volume) AS mkt_share
FROM (SELECT EXTRACT(YEAR FROM o_orderdate) AS o_year,
             l_extendedprice * (1 - l_discount) AS volume, n2.n_name AS nation
      FROM stock.part, stock.supplier, sales.lineitem, sales.orders, crm.customer, crm.nation n1,
           crm.nation n2, crm.region
      WHERE p_partkey = l_partkey AND s_suppkey = l_suppkey AND l_orderkey = o_orderkey
            AND o_custkey = c_custkey AND c_nationkey = n1.n_nationkey
            AND n1.n_regionkey = r_regionkey AND r_name = 'AMERICA'
            AND s_nationkey = n2.n_nationkey
            AND o_orderdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'
            AND p_type = 'ECONOMY ANODIZED STEEL') AS all_nations
GROUP BY o_year
"""),
    "q09": Query("""
SELECT nation, o_year, SUM(amount) AS sum_profit
FROM (SELECT n_name AS nation, EXTRACT(YEAR FROM o_orderdate) AS o_year,
             l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity AS amount
      FROM stock.part, stock.supplier, sales.lineitem, stock.partsupp, sales.orders, crm.nation
      WHERE s_suppkey = l_suppkey AND ps_suppkey = l_suppkey AND ps_partkey = l_partkey
            AND p_partkey = l_partkey AND o_orderkey = l_orderkey AND s_nationkey = n_nationkey
            AND p_name LIKE '%green%') AS profit
GROUP BY nation, o_year
"""),
    "q10": Query("""
SELECT c_custkey, c_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue, c_acctbal, n_name,
       c_address, c_phone, c_comment
FROM crm.customer, sales.orders, sales.lineitem, crm.nation
WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate >= DATE '1993-10-01'
      AND o_orderdate < DATE '1993-10-01' + INTERVAL '3' MONTH AND l_returnflag = 'R'
      AND c_nationkey = n_nationkey
GROUP BY c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment
"""),
    "q11": Query(
        """
SELECT ps_partkey, SUM(ps_supplycost * ps_availqty) AS value
FROM stock.partsupp, stock.supplier, crm.nation
WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY'
GROUP BY ps_partkey
HAVING SUM(ps_supplycost * ps_availqty) > (
    SELECT SUM(ps_supplycost * ps_availqty) * (0.0001 / {scale})
    FROM stock.partsupp, stock.supplier, crm.nation
    WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY')
""",
        """
SELECT ps_partkey, value
FROM (SELECT ps_partkey, SUM(ps_supplycost * ps_availqty) AS value
      FROM stock.partsupp, stock.supplier, crm.nation
      WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY'
      GROUP BY ps_partkey) AS parts
     CROSS JOIN
     (SELECT SUM(ps_supplycost * ps_availqty) * (0.0001 / {scale}) AS least
      FROM stock.partsupp, stock.supplier, crm.nation
      WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY') AS whole
WHERE value > least
""",
        "subquery as a value: cross-joined",
    ),
    "q12": Query("""
SELECT l_shipmode,
       SUM(CASE WHEN o_orderpriority = '1-URGENT' OR o_orderpriority = '2-HIGH' THEN 1 ELSE 0 END)
           AS high_line_count,
       SUM(CASE WHEN o_orderpriority <> '1-URGENT' AND o_orderpriority <> '2-HIGH'
                THEN 1 ELSE 0 END) AS low_line_count
FROM sales.orders, sales.lineitem
WHERE o_orderkey = l_orderkey AND l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate
      AND l_shipdate < l_commitdate AND l_receiptdate >= DATE '1994-01-01'
      AND l_receiptdate < DATE '1994-01-01' + INTERVAL '1' YEAR
GROUP BY l_shipmode
"""),
    "q13": Query("""
SELECT c_count, COUNT(*) AS custdist
FROM (SELECT c_custkey, COUNT(o_orderkey) AS c_count
      FROM crm.customer LEFT OUTER JOIN sales.orders
           ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%'
      GROUP BY c_custkey) AS c_orders
GROUP BY c_count
"""),
    "q14": Query("""
SELECT 100.00 * SUM(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount)
                         ELSE 0 END) / SUM(l_extendedprice * (1 - l_discount)) AS promo_revenue
FROM sales.lineitem, stock.part
WHERE l_partkey = p_partkey AND l_shipdate >= DATE '1995-09-01'
      AND l_shipdate < DATE '1995-09-01' + INTERVAL '1' MONTH
"""),
    "q15": Query(
        """
WITH revenue AS (
    SELECT l_suppkey AS supplier_no, SUM(l_extendedprice * (1 - l_discount)) AS total_revenue
    FROM sales.lineitem
    WHERE l_shipdate >= DATE '1996-01-01' AND l_shipdate < DATE '1996-01-01' + INTERVAL '3' MONTH
    GROUP BY l_suppkey)
SELECT s_suppkey, s_name, s_address, s_phone, total_revenue
FROM stock.supplier, revenue
WHERE s_suppkey = supplier_no AND total_revenue = (SELECT MAX(total_revenue) FROM revenue)
""",
        """
WITH revenue AS (
    SELECT l_suppkey AS supplier_no, SUM(l_extendedprice * (1 - l_discount)) AS total_revenue
    FROM sales.lineitem
    WHERE l_shipdate >= DATE '1996-01-01' AND l_shipdate < DATE '1996-01-01' + INTERVAL '3' MONTH
    GROUP BY l_suppkey)
SELECT s_suppkey, s_name, s_address, s_phone, total_revenue
FROM stock.supplier, revenue, (SELECT MAX(total_revenue) AS most FROM revenue) AS best
WHERE s_suppkey = supplier_no AND total_revenue = most
""",
        "subquery as a value: joined",
    ),
    "q16": Query(
        """
SELECT p_brand, p_type, p_size, COUNT(DISTINCT ps_suppkey) AS supplier_cnt
FROM stock.partsupp, stock.part
WHERE p_partkey = ps_partkey AND p_brand <> 'Brand#45' AND p_type NOT LIKE 'MEDIUM POLISHED%'
      AND p_size IN (49, 14, 23, 45, 19, 3, 36, 9)
      AND ps_suppkey NOT IN (SELECT s_suppkey FROM stock.supplier
                             WHERE s_comment LIKE '%Customer%Complaints%')
GROUP BY p_brand, p_type, p_size
""",
        """
SELECT p_brand, p_type, p_size, COUNT(*) AS supplier_cnt
FROM (SELECT DISTINCT p_brand, p_type, p_size, ps_suppkey
      FROM stock.partsupp, stock.part
      WHERE p_partkey = ps_partkey AND p_brand <> 'Brand#45' AND p_type NOT LIKE 'MEDIUM POLISHED%'
            AND p_size IN (49, 14, 23, 45, 19, 3, 36, 9)
            AND ps_suppkey NOT IN (SELECT s_suppkey FROM stock.supplier
                                   WHERE s_comment LIKE '%Customer%Complaints%')) AS suppliers
GROUP BY p_brand, p_type, p_size
""",
        "COUNT(DISTINCT x): COUNT(*) over DISTINCT rows",
    ),
    "q17": Query(
        """
SELECT SUM(l_extendedprice) / 7.0 AS avg_yearly
FROM sales.lineitem, stock.part
WHERE p_partkey = l_partkey AND p_brand = 'Brand#23' AND p_container = 'MED BOX'
      AND l_quantity < (SELECT 0.2 * AVG(l_quantity) FROM sales.lineitem
                        WHERE l_partkey = p_partkey)
""",
        """
SELECT SUM(l_extendedprice) / 7.0 AS avg_yearly
FROM sales.lineitem, stock.part,
     (SELECT l_partkey AS few_partkey, 0.2 * AVG(l_quantity) AS few FROM sales.lineitem
      GROUP BY l_partkey) AS quantities
WHERE p_partkey = l_partkey AND p_brand = 'Brand#23' AND p_container = 'MED BOX'
      AND few_partkey = p_partkey AND l_quantity < few
""",
        "subquery as a value: joined as a grouped query",
    ),
    "q18": Query("""
SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, SUM(l_quantity) AS sum_quantity
FROM crm.customer, sales.orders, sales.lineitem
WHERE o_orderkey IN (SELECT l_orderkey FROM sales.lineitem GROUP BY l_orderkey
                     HAVING SUM(l_quantity) > 300)
      AND c_custkey = o_custkey AND o_orderkey = l_orderkey
GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
"""),
    "q19": Query(
        """
SELECT SUM(l_extendedprice * (1 - l_discount)) AS revenue
FROM sales.lineitem, stock.part
WHERE (p_partkey = l_partkey AND p_brand = 'Brand#12'
       AND p_container IN ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG')
       AND l_quantity >= 1 AND l_quantity <= 11 AND p_size BETWEEN 1 AND 5
       AND l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON')
   OR (p_partkey = l_partkey AND p_brand = 'Brand#23'
       AND p_container IN ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')
       AND l_quantity >= 10 AND l_quantity <= 20 AND p_size BETWEEN 1 AND 10
       AND l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON')
   OR (p_partkey = l_partkey AND p_brand = 'Brand#34'
       AND p_container IN ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG')
       AND l_quantity >= 20 AND l_quantity <= 30 AND p_size BETWEEN 1 AND 15
       AND l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON')
""",
        """
SELECT SUM(l_extendedprice * (1 - l_discount)) AS revenue
FROM sales.lineitem, stock.part
WHERE p_partkey = l_partkey AND (
      (p_brand = 'Brand#12'
       AND p_container IN ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG')
       AND l_quantity >= 1 AND l_quantity <= 11 AND p_size BETWEEN 1 AND 5
       AND l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON')
   OR (p_brand = 'Brand#23'
       AND p_container IN ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')
       AND l_quantity >= 10 AND l_quantity <= 20 AND p_size BETWEEN 1 AND 10
       AND l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON')
   OR (p_brand = 'Brand#34'
       AND p_container IN ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG')
       AND l_quantity >= 20 AND l_quantity <= 30 AND p_size BETWEEN 1 AND 15
       AND l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON'))
""",
        "the equality in every branch of OR: written once",
    ),
    "q20": Query(
        """
SELECT s_name, s_address
FROM stock.supplier, crm.nation
WHERE s_suppkey IN (
          SELECT ps_suppkey FROM stock.partsupp
          WHERE ps_partkey IN (SELECT p_partkey FROM stock.part WHERE p_name LIKE 'forest%')
                AND ps_availqty > (
                    SELECT 0.5 * SUM(l_quantity) FROM sales.lineitem
                    WHERE l_partkey = ps_partkey AND l_suppkey = ps_suppkey
                          AND l_shipdate >= DATE '1994-01-01'
                          AND l_shipdate < DATE '1994-01-01' + INTERVAL '1' YEAR))
      AND s_nationkey = n_nationkey AND n_name = 'CANADA'
""",
        """
SELECT s_name, s_address
FROM stock.supplier, crm.nation
WHERE s_suppkey IN (
          SELECT ps_suppkey
          FROM stock.partsupp,
               (SELECT l_partkey, l_suppkey, 0.5 * SUM(l_quantity) AS half FROM sales.lineitem
                WHERE l_shipdate >= DATE '1994-01-01'
                      AND l_shipdate < DATE '1994-01-01' + INTERVAL '1' YEAR
                GROUP BY l_partkey, l_suppkey) AS shipped
          WHERE ps_partkey IN (SELECT p_partkey FROM stock.part WHERE p_name LIKE 'forest%')
                AND l_partkey = ps_partkey AND l_suppkey = ps_suppkey AND ps_availqty > half)
      AND s_nationkey = n_nationkey AND n_name = 'CANADA'
""",
        "subquery as a value: joined as a grouped query",
    ),
    "q21": Query("""
SELECT s_name, COUNT(*) AS numwait
FROM stock.supplier, sales.lineitem l1, sales.orders, crm.nation
WHERE s_suppkey = l1.l_suppkey AND o_orderkey = l1.l_orderkey AND o_orderstatus = 'F'
      AND l1.l_receiptdate > l1.l_commitdate
      AND EXISTS (SELECT * FROM sales.lineitem l2
                  WHERE l2.l_orderkey = l1.l_orderkey AND l2.l_suppkey <> l1.l_suppkey)
      AND NOT EXISTS (SELECT * FROM sales.lineitem l3
                      WHERE l3.l_orderkey = l1.l_orderkey AND l3.l_suppkey <> l1.l_suppkey
                            AND l3.l_receiptdate > l3.l_commitdate)
      AND s_nationkey = n_nationkey AND n_name = 'SAUDI ARABIA'
GROUP BY s_name
"""),
    "q22": Query(
        """
SELECT cntrycode, COUNT(*) AS numcust, SUM(c_acctbal) AS totacctbal
FROM (SELECT SUBSTRING(c_phone, 1, 2) AS cntrycode, c_acctbal
      FROM crm.customer
      WHERE SUBSTRING(c_phone, 1, 2) IN ('13', '31', '23', '29', '30', '18', '17')
            AND c_acctbal > (
                SELECT AVG(c_acctbal) FROM crm.customer
                WHERE c_acctbal > 0.00
                      AND SUBSTRING(c_phone, 1, 2) IN ('13', '31', '23', '29', '30', '18', '17'))
            AND NOT EXISTS (SELECT * FROM sales.orders WHERE o_custkey = c_custkey)) AS custsale
GROUP BY cntrycode
""",
        """
SELECT cntrycode, COUNT(*) AS numcust, SUM(c_acctbal) AS totacctbal
FROM (SELECT SUBSTRING(c_phone, 1, 2) AS cntrycode, c_acctbal
      FROM crm.customer
           CROSS JOIN
           (SELECT AVG(c_acctbal) AS average FROM crm.customer
            WHERE c_acctbal > 0.00
                  AND SUBSTRING(c_phone, 1, 2) IN ('13', '31', '23', '29', '30', '18', '17')) AS a
      WHERE SUBSTRING(c_phone, 1, 2) IN ('13', '31', '23', '29', '30', '18', '17')
            AND c_acctbal > average
            AND NOT EXISTS (SELECT * FROM sales.orders WHERE o_custkey = c_custkey)) AS custsale
GROUP BY cntrycode
""",
        "subquery as a value: cross-joined",
    ),
}
