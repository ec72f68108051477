SELECT DISTINCT o.channel, p.method
FROM shop.orders o
LEFT JOIN shop.payments p ON p.order_id = o.id
