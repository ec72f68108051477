SELECT o.id FROM sales.orders o, /*!*/LATERAL (SELECT region FROM crm.customers c WHERE c.id = o.id)
----
SELECT o.id FROM sales.orders o JOIN /*!*/LATERAL (SELECT region FROM crm.customers c)
