claim: ORDER BY and LIMIT are done to the answer
view: customer_id BIGINT; placed DATE; n BIGINT; k BIGINT; s BIGINT; m BIGINT | SELECT customer_id, placed, COUNT(*) AS n, COUNT(id) AS k, SUM(id) AS s, MIN(id) AS m FROM sales.orders GROUP BY customer_id, placed
query: SELECT customer_id, COUNT(*) FROM sales.orders GROUP BY customer_id ORDER BY SUM(id) DESC, 2, customer_id NULLS LAST LIMIT 5 OFFSET 2
gives: SELECT _v.`customer_id` AS `c0`, COALESCE(SUM(_v.`n`), 0) AS `c1` FROM `v` AS _v GROUP BY _v.`customer_id` ORDER BY CAST(SUM(CAST(_v.`s` AS DECIMAL(38,0))) AS BIGINT) DESC NULLS LAST, 2 NULLS FIRST, 1 NULLS LAST LIMIT 5 OFFSET 2
----
claim: ORDER BY of what DISTINCT does not show
view: customer_id BIGINT; placed DATE | SELECT customer_id, placed FROM sales.orders
query: SELECT DISTINCT customer_id FROM sales.orders ORDER BY placed
not: shape
----
claim: what is no column of the answer is not known to a text
view: id BIGINT; n BIGINT | SELECT id, COUNT(*) OVER (PARTITION BY customer_id) AS n FROM sales.orders | recomputed
query: SELECT id, count(*) over (partition by customer_id) as n FROM sales.orders ORDER BY n, id LIMIT 3
not: order
