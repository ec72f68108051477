CREATE MATERIALIZED VIEW v TBLPROPERTIES (/*!*/'steadyview.algorithm' = 'nested-sweep', 'steadyview.level' = 'complete') AS SELECT o.id, c.region FROM sales.orders o JOIN crm.customers c ON c.id = o.customer_id
----
CREATE MATERIALIZED VIEW v TBLPROPERTIES (/*!*/'steadyview.algorithm' = 'recompute', 'steadyview.level' = 'complete') AS SELECT o.id, c.region FROM sales.orders o JOIN crm.customers c ON c.id = o.customer_id
----
CREATE MATERIALIZED VIEW v TBLPROPERTIES (/*!*/'steadyview.algorithm' = 'conventional', 'steadyview.level' = 'convergent') AS SELECT o.id, c.region FROM sales.orders o JOIN crm.customers c ON c.id = o.customer_id
