SELECT id FROM sales.orders WHERE /*!*/(id = 1
----
SELECT id
FROM sales.orders
WHERE id = /*!*/= 3
----
SELECT id FROM sales.orders WHERE note = /*!*/'open
----
SELECT id FROM sales.orders/*!*/)
----
SELECT o.id x /*!*/y FROM sales.orders o
----
SELECT id, FROM sales.orders
----
SELECT SUM(/*!*/) AS s FROM sales.order_lines
