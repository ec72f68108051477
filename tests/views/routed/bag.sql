claim: DISTINCT rows are not all rows
view: customer_id BIGINT | SELECT DISTINCT customer_id FROM sales.orders
query: SELECT customer_id FROM sales.orders
not: bag
----
claim: DISTINCT of DISTINCT rows
view: customer_id BIGINT | SELECT DISTINCT customer_id FROM sales.orders
query: SELECT DISTINCT customer_id FROM sales.orders
gives: SELECT _v.`customer_id` AS `c0` FROM `v` AS _v
----
claim: groups are not rows
view: customer_id BIGINT; n BIGINT; m DATE | SELECT customer_id, COUNT(*) AS n, MIN(placed) AS m FROM sales.orders GROUP BY customer_id
query: SELECT customer_id FROM sales.orders
not: bag
----
claim: MIN, MAX and COUNT DISTINCT of DISTINCT rows
view: customer_id BIGINT | SELECT DISTINCT customer_id FROM sales.orders
query: SELECT MIN(customer_id), MAX(customer_id), COUNT(DISTINCT customer_id) FROM sales.orders
gives: SELECT MIN(_v.`customer_id`) AS `c0`, MAX(_v.`customer_id`) AS `c1`, COUNT(DISTINCT _v.`customer_id`) AS `c2` FROM `v` AS _v
----
claim: COUNT of DISTINCT rows
view: customer_id BIGINT | SELECT DISTINCT customer_id FROM sales.orders
query: SELECT COUNT(customer_id) FROM sales.orders
not: aggregates
