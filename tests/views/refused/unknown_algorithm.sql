CREATE MATERIALIZED VIEW v TBLPROPERTIES (/*!*/'steadyview.algorithm' = 'quick') AS SELECT o.id, c.region FROM sales.orders o JOIN crm.customers c ON c.id = o.customer_id
----
CREATE MATERIALIZED VIEW v TBLPROPERTIES (/*!*/'steadyview.algorithm' = 'sweep:2') AS SELECT o.id, c.region FROM sales.orders o JOIN crm.customers c ON c.id = o.customer_id
----
CREATE MATERIALIZED VIEW v TBLPROPERTIES (/*!*/'steadyview.algorithm' = 'c-t-strobe:0') AS SELECT o.id, c.region FROM sales.orders o JOIN crm.customers c ON c.id = o.customer_id
----
CREATE MATERIALIZED VIEW v TBLPROPERTIES (/*!*/'steadyview.algorithm' = 'Strobe') AS SELECT o.id, c.region FROM sales.orders o JOIN crm.customers c ON c.id = o.customer_id
