CREATE MATERIALIZED VIEW v TBLPROPERTIES (/*!*/'steadyview.max_staleness' = 'soon') AS SELECT id FROM sales.orders
