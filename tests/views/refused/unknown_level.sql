CREATE MATERIALIZED VIEW v TBLPROPERTIES (/*!*/'steadyview.level' = 'perfect') AS SELECT id FROM sales.orders
