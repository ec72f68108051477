CREATE MATERIALIZED VIEW v TBLPROPERTIES (/*!*/'steadyview.schedule' = 'every 5 minutes') AS SELECT id FROM sales.orders
----
CREATE MATERIALIZED VIEW v TBLPROPERTIES ('steadyview.policy' = 'immediate', /*!*/'steadyview.refresh_to' = 'end of day') AS SELECT id FROM sales.orders
----
CREATE MATERIALIZED VIEW v
TBLPROPERTIES (/*!*/'steadyview.algorithm' = 'sweep', 'steadyview.policy' = 'ipda') AS SELECT id FROM sales.orders
----
CREATE MATERIALIZED VIEW v TBLPROPERTIES ('steadyview.policy' = 'dpda', /*!*/'steadyview.fallback' = 'recompute') AS SELECT id FROM sales.orders
