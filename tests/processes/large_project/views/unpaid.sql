SELECT o.id, o.customer, o.placed
FROM shop.orders o
WHERE NOT EXISTS (SELECT 1 FROM shop.payments p WHERE p.order_id = o.id AND p.amount IS NOT NULL)
