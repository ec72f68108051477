SELECT id,
       /*!*/nothing
FROM sales.orders
----
SELECT o.id FROM sales.orders o WHERE /*!*/orders.id = 1
----
SELECT id FROM sales.orders, sales.order_lines JOIN crm.customers c ON c.region = /*!*/note
----
SELECT /*!*/x.* FROM sales.orders o
----
SELECT a FROM /*!*/sales.orders AS o(a, b)
----
SELECT x.id FROM (SELECT id FROM sales.orders) x WHERE /*!*/x.note = 'a'
----
SELECT o.id FROM sales.orders o JOIN sales.order_lines l USING (/*!*/id)
----
SELECT /*!*/b + 1 AS a, 1 AS b FROM sales.orders
