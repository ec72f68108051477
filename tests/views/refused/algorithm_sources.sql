CREATE MATERIALIZED VIEW v TBLPROPERTIES (/*!*/'steadyview.algorithm' = 'eca') AS SELECT o.id, c.region FROM sales.orders o JOIN crm.customers c ON c.id = o.customer_id
----
CREATE MATERIALIZED VIEW v TBLPROPERTIES (/*!*/'steadyview.algorithm' = 'eca-key') AS SELECT o.id, c.region FROM sales.orders o JOIN crm.customers c ON c.id = o.customer_id
