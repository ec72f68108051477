CREATE MATERIALIZED VIEW v TBLPROPERTIES (/*!*/'steadyview.algorithm' = 'strobe') AS SELECT o.id, c.region FROM sales.orders o JOIN crm.customers c ON c.id = o.customer_id
----
CREATE MATERIALIZED VIEW v TBLPROPERTIES (/*!*/'steadyview.algorithm' = 't-strobe') AS SELECT o.id, c.region FROM sales.orders o JOIN crm.customers c ON c.id = o.customer_id
----
CREATE MATERIALIZED VIEW v TBLPROPERTIES (/*!*/'steadyview.algorithm' = 'g-strobe') AS SELECT o.id, c.region FROM sales.orders o JOIN crm.customers c ON c.id = o.customer_id
----
CREATE MATERIALIZED VIEW v TBLPROPERTIES (/*!*/'steadyview.algorithm' = 'c-strobe') AS SELECT o.id, c.region FROM sales.orders o JOIN crm.customers c ON c.id = o.customer_id
----
CREATE MATERIALIZED VIEW v TBLPROPERTIES (/*!*/'steadyview.algorithm' = 'c-t-strobe') AS SELECT o.id, c.region FROM sales.orders o JOIN crm.customers c ON c.id = o.customer_id
----
CREATE MATERIALIZED VIEW v TBLPROPERTIES (/*!*/'steadyview.algorithm' = 'c-t-strobe:3') AS SELECT o.id, c.region FROM sales.orders o JOIN crm.customers c ON c.id = o.customer_id
----
CREATE MATERIALIZED VIEW v TBLPROPERTIES (/*!*/'steadyview.algorithm' = 'eca-key') AS SELECT o.id, l.price FROM sales.orders o JOIN sales.order_lines l ON l.order_id = o.id
