claim: the rest is asked of the view's columns
view: customer_id BIGINT; placed DATE | SELECT customer_id, placed FROM sales.orders WHERE customer_id > 1
query: SELECT placed FROM sales.orders WHERE placed > DATE '2026-01-01' AND customer_id > 1
gives: SELECT _v.`placed` AS `c0` FROM `v` AS _v WHERE _v.`placed` > DATE '2026-01-01'
----
claim: the view has a condition that the query has not
view: customer_id BIGINT; placed DATE | SELECT customer_id, placed FROM sales.orders WHERE customer_id > 1
query: SELECT placed FROM sales.orders
not: where
----
claim: a condition of another alias is another one
view: a DATE | SELECT p.placed AS a FROM sales.orders p, sales.orders q WHERE p.id = q.customer_id AND p.customer_id > 1
query: SELECT x.placed FROM sales.orders x, sales.orders y WHERE x.id = y.customer_id AND y.customer_id > 1
not: where
----
claim: x > 1 OR x <= 1 is not TRUE of NULL
view: customer_id BIGINT; placed DATE | SELECT customer_id, placed FROM sales.orders WHERE customer_id > 1 OR customer_id <= 1
query: SELECT placed FROM sales.orders
not: where
----
claim: no condition follows from another one
view: customer_id BIGINT; placed DATE | SELECT customer_id, placed FROM sales.orders WHERE customer_id > 1
query: SELECT placed FROM sales.orders WHERE customer_id > 2
not: where
----
claim: the sides of = may stand either way
view: id BIGINT; price DECIMAL(12,2) | SELECT o.id, l.price FROM sales.orders o JOIN sales.order_lines l ON o.id = l.order_id
query: SELECT y.price FROM sales.order_lines y, sales.orders x WHERE x.id = y.order_id
gives: SELECT _v.`price` AS `c0` FROM `v` AS _v
