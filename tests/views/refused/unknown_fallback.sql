CREATE MATERIALIZED VIEW v TBLPROPERTIES (/*!*/'steadyview.fallback' = 'yes') AS SELECT id FROM sales.orders
