CREATE MATERIALIZED VIEW v TBLPROPERTIES (/*!*/'steadyview.compress' = 'week after 1 day') AS SELECT id FROM sales.orders
----
CREATE MATERIALIZED VIEW v TBLPROPERTIES ('steadyview.level' = 'complete', /*!*/'steadyview.compress' = 'hour') AS SELECT id FROM sales.orders
