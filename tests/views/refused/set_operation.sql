SELECT id FROM sales.orders UNION ALL /*!*/SELECT id, region FROM crm.customers
----
SELECT id FROM sales.orders EXCEPT /*!*/SELECT id, region FROM crm.customers
----
SELECT id FROM sales.orders /*!*/UNION ALL BY NAME SELECT id FROM crm.customers
