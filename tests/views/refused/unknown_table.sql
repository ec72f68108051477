SELECT id
FROM /*!*/sales.order
----
SELECT id FROM /*!*/orders
----
SELECT id FROM /*!*/nowhere.orders
----
SELECT id FROM /*!*/sales.private.orders
----
WITH x AS (SELECT * FROM /*!*/x) SELECT * FROM x
