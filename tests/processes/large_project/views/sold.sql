-- Every line of an order with its customer and product: four tables of two databases.
SELECT o.id AS order_id, o.customer, c.region, p.kind, l.quantity, l.quantity * l.price AS amount
FROM shop.orders o
JOIN shop.lines l ON l.order_id = o.id
JOIN crm.customers c ON c.id = o.customer
JOIN crm.products p ON p.id = l.product
