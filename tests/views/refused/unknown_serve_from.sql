CREATE MATERIALIZED VIEW v TBLPROPERTIES ('steadyview.serve' = 'cache', 'steadyview.serve.key' = 'id', /*!*/'steadyview.serve.from' = 'logs') AS SELECT id FROM sales.orders
----
CREATE MATERIALIZED VIEW v TBLPROPERTIES (/*!*/'steadyview.serve.from' = 'log') AS SELECT id FROM sales.orders
