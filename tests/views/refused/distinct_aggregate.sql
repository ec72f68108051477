SELECT /*!*/COUNT(DISTINCT region) AS n FROM crm.customers
----
SELECT id, /*!*/SUM(DISTINCT id) AS n FROM crm.customers GROUP BY id
