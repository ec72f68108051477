claim: a window, in the same words
view: id BIGINT; n BIGINT | SELECT id, COUNT(*) OVER (PARTITION BY customer_id) AS n FROM sales.orders | recomputed
query: SELECT id, count(*) over (partition by customer_id) as n FROM sales.orders ORDER BY 2, 1 LIMIT 3
gives: SELECT _v.`id` AS `c0`, _v.`n` AS `c1` FROM `v` AS _v ORDER BY 2 NULLS FIRST, 1 NULLS FIRST LIMIT 3
----
claim: a window, in other words
view: id BIGINT; n BIGINT | SELECT id, COUNT(*) OVER (PARTITION BY customer_id) AS n FROM sales.orders | recomputed
query: SELECT id, COUNT(*) OVER (PARTITION BY customer_id) + 0 FROM sales.orders
not: shape
----
claim: an outer join, in the same words
view: id BIGINT | SELECT o.id FROM sales.orders o LEFT JOIN sales.order_lines l ON l.order_id = o.id
query: SELECT o.id FROM sales.orders o LEFT JOIN sales.order_lines l ON l.order_id = o.id
gives: SELECT _v.`id` AS `c0` FROM `v` AS _v
----
claim: an outer join is more than its rows
view: id BIGINT | SELECT o.id FROM sales.orders o LEFT JOIN sales.order_lines l ON l.order_id = o.id
query: SELECT o.id FROM sales.orders o LEFT JOIN sales.order_lines l ON l.order_id = o.id WHERE o.id > 1
not: shape
----
claim: dice fall otherwise every time
view: id BIGINT; r DOUBLE | SELECT id, RAND() AS r FROM sales.orders | recomputed
query: SELECT id, RAND() AS r FROM sales.orders
not: text
----
claim: the clock goes on
view: d DATE | SELECT CURRENT_DATE() AS d FROM sales.orders | recomputed
query: SELECT CURRENT_DATE() AS d FROM sales.orders
not: text
----
claim: LIMIT in the view, and in the query
view: id BIGINT | SELECT id FROM sales.orders ORDER BY id LIMIT 2 | recomputed
query: SELECT id FROM sales.orders ORDER BY id LIMIT 2
gives: SELECT _v.`id` AS `c0` FROM `v` AS _v ORDER BY 1 NULLS FIRST
----
claim: LIMIT in the view alone
view: id BIGINT | SELECT id FROM sales.orders ORDER BY id LIMIT 2 | recomputed
query: SELECT id FROM sales.orders
not: view
