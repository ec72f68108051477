SELECT region, /*!*/id, COUNT(*) AS n FROM crm.customers GROUP BY region
----
SELECT region, lower(/*!*/note) || 'x' AS x FROM sales.orders JOIN crm.customers c ON c.id = customer_id GROUP BY region
----
SELECT /*!*/id, COUNT(*) AS n FROM crm.customers
----
SELECT /*!*/id + customer_id * 2 AS x FROM sales.orders GROUP BY id + customer_id
----
SELECT 1 AS one, COUNT(*) + /*!*/id AS n FROM crm.customers GROUP BY ALL
----
SELECT /*!*/* FROM crm.customers GROUP BY id
