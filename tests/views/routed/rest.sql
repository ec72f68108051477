claim: of grouping columns
view: customer_id BIGINT; n BIGINT; m DATE | SELECT customer_id, COUNT(*) AS n, MIN(placed) AS m FROM sales.orders GROUP BY customer_id
query: SELECT COUNT(*) FROM sales.orders WHERE customer_id = 3
gives: SELECT COALESCE(SUM(_v.`n`), 0) AS `c0` FROM `v` AS _v WHERE _v.`customer_id` = 3
----
claim: a condition on x is not one on MIN(x)
view: customer_id BIGINT; n BIGINT; m DATE | SELECT customer_id, COUNT(*) AS n, MIN(placed) AS m FROM sales.orders GROUP BY customer_id
query: SELECT customer_id, COUNT(*) FROM sales.orders WHERE placed > DATE '2026-01-01' GROUP BY customer_id
not: rest
----
claim: one group of all rows has no columns to ask
view: n BIGINT | SELECT COUNT(*) AS n FROM sales.orders
query: SELECT COUNT(*) FROM sales.orders WHERE 1 = 0
not: rest
----
claim: a column that the view does not show
view: customer_id BIGINT; placed DATE | SELECT customer_id, placed FROM sales.orders
query: SELECT placed FROM sales.orders WHERE id = 1
not: columns
