SELECT id FROM sales.orders
/*!*/UNION ALL
SELECT id FROM crm.customers
----
SELECT id FROM sales.orders WHERE id > 1 /*!*/EXCEPT SELECT id FROM crm.customers
----
SELECT id FROM sales.orders /*!*/MINUS SELECT id FROM crm.customers
----
(SELECT id FROM sales.orders) /*!*/INTERSECT (SELECT id FROM crm.customers)
----
SELECT x.id FROM (SELECT id FROM sales.orders /*!*/UNION SELECT id FROM crm.customers) x
----
SELECT x.id FROM ((SELECT id FROM sales.orders) /*!*/UNION (SELECT id FROM crm.customers)) x
