-- All customers, with their orders on the web and with who brought them.
SELECT c.id AS customer, c.region, o.id AS order_id, o.placed, f.region AS brought_from
FROM crm.customers c
LEFT JOIN shop.orders o ON o.customer = c.id AND o.channel = 'web'
LEFT JOIN crm.customers f ON f.id = c.brought_by
