CREATE MATERIALIZED VIEW v TBLPROPERTIES ('steadyview.algorithm' = 'sweep') AS SELECT o.id FROM sales.orders o /*!*/LEFT JOIN crm.customers c ON c.id = o.customer_id
----
CREATE MATERIALIZED VIEW v TBLPROPERTIES ('steadyview.algorithm' = 'sweep') AS SELECT o.id FROM sales.orders o JOIN /*!*/other_view c ON c.id = o.customer_id
----
CREATE MATERIALIZED VIEW v TBLPROPERTIES ('steadyview.algorithm' = 'sweep') AS SELECT id FROM sales.orders /*!*/UNION ALL SELECT id FROM crm.customers
----
CREATE MATERIALIZED VIEW v TBLPROPERTIES ('steadyview.algorithm' = 'sweep') AS SELECT id, COUNT(*) AS n FROM sales.orders GROUP BY id /*!*/HAVING COUNT(*) > 1
----
CREATE MATERIALIZED VIEW v TBLPROPERTIES ('steadyview.algorithm' = 'sweep') AS SELECT MAX(id) AS n FROM sales.orders
