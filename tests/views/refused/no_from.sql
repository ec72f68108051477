/*!*/SELECT 1 AS a
----
SELECT a FROM /*!*/VALUES (1), (2) AS t(a)
----
SELECT a FROM (/*!*/VALUES (1)) AS t(a)
----
/*!*/VALUES (1)
----
SELECT o.id FROM sales.orders o, (/*!*/SELECT 1 AS one) x
