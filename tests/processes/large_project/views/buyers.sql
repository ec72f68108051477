SELECT c.id, c.region
FROM crm.customers c
LEFT SEMI JOIN shop.orders o ON o.customer = c.id
