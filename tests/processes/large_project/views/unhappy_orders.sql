-- Orders of a product that their customer complained of more than he bought of it.
SELECT o.id, o.customer
FROM shop.orders o
WHERE EXISTS (
    SELECT 1
    FROM crm.complaints q JOIN shop.lines l ON l.product = q.product
    WHERE l.order_id = o.id AND q.customer = o.customer AND q.severity > l.quantity
)
