claim: the same groups are rows of the view
view: customer_id BIGINT; placed DATE; n BIGINT; k BIGINT; s BIGINT; m BIGINT | SELECT customer_id, placed, COUNT(*) AS n, COUNT(id) AS k, SUM(id) AS s, MIN(id) AS m FROM sales.orders GROUP BY customer_id, placed
query: SELECT placed, customer_id, SUM(id) FROM sales.orders GROUP BY placed, customer_id HAVING COUNT(*) > 1
gives: SELECT _v.`placed` AS `c0`, _v.`customer_id` AS `c1`, _v.`s` AS `c2` FROM `v` AS _v WHERE _v.`n` > 1
----
claim: fewer keys, by the view's own aggregates
view: customer_id BIGINT; placed DATE; n BIGINT; k BIGINT; s BIGINT; m BIGINT | SELECT customer_id, placed, COUNT(*) AS n, COUNT(id) AS k, SUM(id) AS s, MIN(id) AS m FROM sales.orders GROUP BY customer_id, placed
query: SELECT customer_id, COUNT(*), COUNT(id), SUM(id), MIN(id) FROM sales.orders GROUP BY customer_id
gives: SELECT _v.`customer_id` AS `c0`, COALESCE(SUM(_v.`n`), 0) AS `c1`, COALESCE(SUM(_v.`k`), 0) AS `c2`, CAST(SUM(CAST(_v.`s` AS DECIMAL(38,0))) AS BIGINT) AS `c3`, MIN(_v.`m`) AS `c4` FROM `v` AS _v GROUP BY _v.`customer_id`
----
claim: groups by something that is made of keys
view: customer_id BIGINT; placed DATE; n BIGINT; k BIGINT; s BIGINT; m BIGINT | SELECT customer_id, placed, COUNT(*) AS n, COUNT(id) AS k, SUM(id) AS s, MIN(id) AS m FROM sales.orders GROUP BY customer_id, placed
query: SELECT YEAR(placed), COUNT(*) FROM sales.orders GROUP BY YEAR(placed)
gives: SELECT YEAR(_v.`placed`) AS `c0`, COALESCE(SUM(_v.`n`), 0) AS `c1` FROM `v` AS _v GROUP BY YEAR(_v.`placed`)
----
claim: a key that the view has not
view: customer_id BIGINT; n BIGINT; m DATE | SELECT customer_id, COUNT(*) AS n, MIN(placed) AS m FROM sales.orders GROUP BY customer_id
query: SELECT placed, COUNT(*) FROM sales.orders GROUP BY placed
not: groups
----
claim: COUNT over nothing is 0
view: customer_id BIGINT; placed DATE; n BIGINT; k BIGINT; s BIGINT; m BIGINT | SELECT customer_id, placed, COUNT(*) AS n, COUNT(id) AS k, SUM(id) AS s, MIN(id) AS m FROM sales.orders GROUP BY customer_id, placed
query: SELECT COUNT(*) FROM sales.orders WHERE 1 = 0
gives: SELECT COALESCE(SUM(_v.`n`), 0) AS `c0` FROM `v` AS _v WHERE 1 = 0
----
claim: HAVING is asked of the coarser groups
view: customer_id BIGINT; placed DATE; n BIGINT; k BIGINT; s BIGINT; m BIGINT | SELECT customer_id, placed, COUNT(*) AS n, COUNT(id) AS k, SUM(id) AS s, MIN(id) AS m FROM sales.orders GROUP BY customer_id, placed
query: SELECT customer_id FROM sales.orders GROUP BY customer_id HAVING SUM(id) > 5
gives: SELECT _v.`customer_id` AS `c0` FROM `v` AS _v GROUP BY _v.`customer_id` HAVING CAST(SUM(CAST(_v.`s` AS DECIMAL(38,0))) AS BIGINT) > 5
