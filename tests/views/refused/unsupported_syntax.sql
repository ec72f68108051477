SELECT /*!*/* EXCEPT (note) FROM sales.orders
----
SELECT size(transform(array(1, 2), /*!*/t0 -> t0 + id)) AS a FROM sales.orders
----
SELECT id FROM sales.orders /*!*/|> WHERE id > 1
----
SELECT id FROM sales.orders o JOIN crm.customers c JOIN sales.order_lines l ON l.order_id = o.id /*!*/ON c.id = o.customer_id
