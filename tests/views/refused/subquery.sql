SELECT id FROM sales.orders o WHERE EXISTS (/*!*/SELECT 1 FROM crm.customers c WHERE c.id = o.id)
----
SELECT id FROM sales.orders WHERE id IN (/*!*/SELECT id FROM crm.customers)
----
SELECT id, (/*!*/SELECT COUNT(*) FROM crm.customers) AS n FROM sales.orders
----
SELECT o.id FROM sales.orders o JOIN crm.customers c ON c.id = (/*!*/SELECT SUM(quantity) FROM sales.order_lines)
----
SELECT COUNT(*) AS n FROM sales.orders GROUP BY (/*!*/SELECT 1)
