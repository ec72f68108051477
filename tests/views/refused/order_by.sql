SELECT id FROM sales.orders /*!*/ORDER BY id
----
SELECT id FROM sales.orders WHERE id > 1 /*!*/SORT BY id
----
SELECT id FROM sales.orders /*!*/DISTRIBUTE BY id
----
SELECT id FROM sales.orders /*!*/CLUSTER BY id
----
SELECT COUNT(*) AS n FROM sales.orders GROUP BY id /*!*/ORDER BY n
