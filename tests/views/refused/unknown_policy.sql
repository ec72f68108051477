CREATE MATERIALIZED VIEW v TBLPROPERTIES (/*!*/'steadyview.policy' = 'later') AS SELECT id FROM sales.orders
----
CREATE MATERIALIZED VIEW v
TBLPROPERTIES ('steadyview.level' = 'complete', /*!*/'steadyview.policy' = 'IPDA') AS SELECT id FROM sales.orders
