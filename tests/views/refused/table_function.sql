SELECT id FROM /*!*/range(10)
----
SELECT o.id FROM sales.orders o, /*!*/explode(array(1))
----
SELECT id FROM /*!*/TABLE(range(3))
