SELECT region, COUNT(*) AS n FROM crm.customers GROUP BY /*!*/ROLLUP(region)
----
SELECT region, COUNT(*) AS n FROM crm.customers GROUP BY /*!*/CUBE (region)
----
SELECT region, COUNT(*) AS n FROM crm.customers GROUP BY /*!*/GROUPING SETS ((region), ())
----
SELECT region, COUNT(*) AS n FROM crm.customers GROUP BY region /*!*/WITH ROLLUP
----
SELECT region, COUNT(*) AS n FROM crm.customers GROUP BY region /*!*/GROUPING SETS ((region))
----
SELECT COUNT(*) AS n FROM crm.customers GROUP BY /*!*/()
----
SELECT region, /*!*/grouping(region) AS g FROM crm.customers GROUP BY region
