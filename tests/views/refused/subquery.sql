SELECT id, (/*!*/SELECT COUNT(*) FROM crm.customers) AS n FROM sales.orders
----
SELECT o.id FROM sales.orders o JOIN crm.customers c ON c.id = (/*!*/SELECT SUM(quantity) FROM sales.order_lines)
----
SELECT COUNT(*) AS n FROM sales.orders GROUP BY (/*!*/SELECT 1)
----
SELECT id FROM sales.orders o WHERE EXISTS (SELECT COUNT(*) FROM crm.customers c WHERE c.id = /*!*/o.id HAVING COUNT(*) > 1)
----
SELECT id FROM sales.orders o WHERE EXISTS (SELECT 1 FROM crm.customers c WHERE EXISTS (SELECT 1 FROM sales.order_lines l WHERE l.order_id = /*!*/o.id))
----
SELECT id FROM sales.orders o WHERE id IN (SELECT order_id FROM sales.order_lines UNION SELECT c.id FROM crm.customers c WHERE c.region = /*!*/o.note)
----
SELECT o.id FROM sales.orders o LEFT JOIN crm.customers c ON /*!*/EXISTS (SELECT 1 FROM sales.order_lines l WHERE l.order_id = o.id AND l.quantity = c.id)
----
SELECT id FROM sales.orders WHERE id IN (/*!*/SELECT id, region FROM crm.customers)
