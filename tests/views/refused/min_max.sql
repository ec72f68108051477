SELECT region, /*!*/MAX(id) AS m FROM crm.customers GROUP BY region
----
SELECT /*!*/min(id) AS m FROM crm.customers
