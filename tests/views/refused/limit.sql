SELECT id FROM sales.orders /*!*/LIMIT 10
----
SELECT id FROM sales.orders /*!*/OFFSET 10
