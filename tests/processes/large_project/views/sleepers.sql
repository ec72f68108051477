SELECT c.id, c.region
FROM crm.customers c
LEFT ANTI JOIN shop.orders o ON o.customer = c.id AND o.placed > DATE '2026-01-10'
