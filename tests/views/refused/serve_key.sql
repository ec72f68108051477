CREATE MATERIALIZED VIEW v TBLPROPERTIES (/*!*/'steadyview.serve.key' = 'id') AS SELECT id FROM sales.orders
