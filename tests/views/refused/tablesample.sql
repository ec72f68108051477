SELECT id FROM sales.orders /*!*/TABLESAMPLE (10 PERCENT)
----
SELECT id FROM (SELECT * FROM sales.orders) /*!*/TABLESAMPLE (5 ROWS)
