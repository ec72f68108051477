SELECT o.id FROM sales.orders o
/*!*/LEFT JOIN crm.customers c ON c.id = o.customer_id
----
SELECT o.id FROM sales.orders o
/*!*/LEFT OUTER JOIN crm.customers c ON c.id = o.customer_id
----
SELECT o.id FROM sales.orders o
/*!*/RIGHT JOIN crm.customers c ON c.id = o.customer_id
----
SELECT o.id FROM sales.orders o
/*!*/FULL OUTER JOIN crm.customers c ON c.id = o.customer_id
