CREATE MATERIALIZED VIEW v TBLPROPERTIES ('steadyview.policy' = 'dpda', /*!*/'steadyview.refresh_to' = 'end of week') AS SELECT id FROM sales.orders
----
CREATE MATERIALIZED VIEW v TBLPROPERTIES (/*!*/'steadyview.refresh_to' = '') AS SELECT id FROM sales.orders
