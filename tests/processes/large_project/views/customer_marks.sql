SELECT c.id,
       EXISTS (SELECT 1 FROM shop.orders o WHERE o.customer = c.id AND o.channel = 'web') AS on_the_web,
       NOT EXISTS (SELECT 1 FROM crm.complaints q WHERE q.customer = c.id) AS content,
       c.brought_by IN (SELECT id FROM buyers) AS brought_by_buyer,
       c.region NOT IN (SELECT b.region FROM buyers b WHERE b.id = c.brought_by) AS moved
FROM crm.customers c
