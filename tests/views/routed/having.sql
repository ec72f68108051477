claim: the query has the same, and more
view: customer_id BIGINT; n BIGINT | SELECT customer_id, COUNT(*) AS n FROM sales.orders GROUP BY customer_id HAVING COUNT(*) > 1
query: SELECT customer_id FROM sales.orders GROUP BY customer_id HAVING COUNT(*) > 1 AND customer_id > 3
gives: SELECT _v.`customer_id` AS `c0` FROM `v` AS _v WHERE _v.`customer_id` > 3
----
claim: groups that are left out are asked for
view: customer_id BIGINT; n BIGINT | SELECT customer_id, COUNT(*) AS n FROM sales.orders GROUP BY customer_id HAVING COUNT(*) > 1
query: SELECT customer_id, COUNT(*) FROM sales.orders GROUP BY customer_id
not: having
----
claim: nothing is made of groups of which some are left out
view: customer_id BIGINT; n BIGINT | SELECT customer_id, COUNT(*) AS n FROM sales.orders GROUP BY customer_id HAVING COUNT(*) > 1
query: SELECT COUNT(*) FROM sales.orders
not: having
----
claim: a rest changes which groups there are
view: customer_id BIGINT; n BIGINT | SELECT customer_id, COUNT(*) AS n FROM sales.orders GROUP BY customer_id HAVING COUNT(*) > 1
query: SELECT customer_id FROM sales.orders WHERE customer_id > 3 GROUP BY customer_id HAVING COUNT(*) > 1
not: having
