SELECT id FROM crm.customers WHERE /*!*/COUNT(*) > 1
----
SELECT id FROM crm.customers GROUP BY id, /*!*/SUM(id)
----
SELECT SUM(/*!*/COUNT(*)) AS n FROM crm.customers GROUP BY id
----
SELECT o.id FROM sales.orders o JOIN crm.customers c ON /*!*/SUM(c.id) = o.id
----
SELECT region, /*!*/COUNT(*) AS n FROM crm.customers GROUP BY 2
