SELECT region, COUNT(*) AS n FROM crm.customers GROUP BY /*!*/3
----
SELECT * FROM crm.customers GROUP BY /*!*/1, 2
