SELECT * FROM sales.order_lines /*!*/PIVOT (SUM(price) FOR quantity IN (1, 2))
----
SELECT * FROM (SELECT price, quantity FROM sales.order_lines) /*!*/PIVOT (SUM(price) FOR quantity IN (1, 2))
----
SELECT * FROM sales.order_lines /*!*/UNPIVOT (v FOR k IN (price, quantity))
