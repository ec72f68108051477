SELECT region, COUNT(*) AS n FROM crm.customers GROUP BY region /*!*/HAVING COUNT(*) > 1
