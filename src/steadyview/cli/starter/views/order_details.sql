-- A file may hold the SELECT alone: the view is called like the file.
SELECT o.id AS order_id, c.name AS customer, c.region, l.product, l.quantity, l.price_cents
FROM sales.orders o
JOIN sales.order_lines l ON l.order_id = o.id
JOIN crm.customers c ON c.id = o.customer_id
WHERE l.quantity > 0
