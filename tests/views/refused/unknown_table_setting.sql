CREATE MATERIALIZED VIEW v TBLPROPERTIES (/*!*/'steadyview.table' = 'sometimes') AS SELECT id FROM sales.orders
----
CREATE MATERIALIZED VIEW v TBLPROPERTIES (/*!*/'steadyview.table' = 'every 0 minutes') AS SELECT id FROM sales.orders
