SELECT c.id, c.region
FROM crm.customers c
WHERE c.region IS NULL
   OR EXISTS (SELECT 1 FROM crm.complaints q WHERE q.customer = c.id AND q.severity >= 3)
   OR c.id IN (SELECT brought_by FROM crm.customers WHERE region = 'north')
