SELECT region, /*!*/COUNT(*) AS _count FROM crm.customers GROUP BY region
----
SELECT /*!*/id AS _CN FROM sales.orders
----
SELECT /*!*/id AS _visible_sum_0 FROM sales.orders
