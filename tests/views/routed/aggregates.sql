claim: AVG is the sum by the number of values
view: order_id BIGINT; quantity INT; n BIGINT; s DECIMAL(22,2); k BIGINT; a DECIMAL(16,6) | SELECT order_id, quantity, COUNT(*) AS n, SUM(price) AS s, COUNT(price) AS k, AVG(price) AS a FROM sales.order_lines GROUP BY order_id, quantity
query: SELECT order_id, AVG(price) FROM sales.order_lines GROUP BY order_id
gives: SELECT _v.`order_id` AS `c0`, CASE WHEN SUM(_v.`k`) > 0 THEN CAST(CAST((SUM(CAST(_v.`s` AS DECIMAL(38,2))) - (SUM(CAST(_v.`s` AS DECIMAL(38,2))) % CAST(SUM(_v.`k`) AS DECIMAL(12,0)))) / CAST(SUM(_v.`k`) AS DECIMAL(12,0)) AS DECIMAL(16,6)) + CAST((SUM(CAST(_v.`s` AS DECIMAL(38,2))) % CAST(SUM(_v.`k`) AS DECIMAL(12,0))) / CAST(SUM(_v.`k`) AS DECIMAL(12,0)) AS DECIMAL(16,6)) AS DECIMAL(16,6)) END AS `c1` FROM `v` AS _v GROUP BY _v.`order_id`
----
claim: AVG of the same groups is as the view has it
view: order_id BIGINT; quantity INT; n BIGINT; s DECIMAL(22,2); k BIGINT; a DECIMAL(16,6) | SELECT order_id, quantity, COUNT(*) AS n, SUM(price) AS s, COUNT(price) AS k, AVG(price) AS a FROM sales.order_lines GROUP BY order_id, quantity
query: SELECT order_id, quantity, AVG(price) FROM sales.order_lines GROUP BY order_id, quantity
gives: SELECT _v.`order_id` AS `c0`, _v.`quantity` AS `c1`, _v.`a` AS `c2` FROM `v` AS _v
----
claim: AVG by COUNT(*) counts NULLs
view: order_id BIGINT; quantity INT; n BIGINT; s DECIMAL(22,2); a DECIMAL(16,6) | SELECT order_id, quantity, COUNT(*) AS n, SUM(price) AS s, AVG(price) AS a FROM sales.order_lines GROUP BY order_id, quantity
query: SELECT order_id, AVG(price) FROM sales.order_lines GROUP BY order_id
not: aggregates
----
claim: AVG is no AVG of AVGs
view: order_id BIGINT; quantity INT; a DECIMAL(16,6) | SELECT order_id, quantity, AVG(price) AS a FROM sales.order_lines GROUP BY order_id, quantity
query: SELECT order_id, AVG(price) FROM sales.order_lines GROUP BY order_id
not: aggregates
----
claim: a key is counted, summed and averaged as often as it has rows
view: order_id BIGINT; quantity INT; n BIGINT; s DECIMAL(22,2); k BIGINT; a DECIMAL(16,6) | SELECT order_id, quantity, COUNT(*) AS n, SUM(price) AS s, COUNT(price) AS k, AVG(price) AS a FROM sales.order_lines GROUP BY order_id, quantity
query: SELECT COUNT(quantity), SUM(quantity), AVG(quantity), MIN(quantity) FROM sales.order_lines
gives: SELECT COALESCE(SUM(CASE WHEN (_v.`quantity`) IS NULL THEN 0 ELSE _v.`n` END), 0) AS `c0`, CAST(SUM(CAST(_v.`quantity` AS DECIMAL(10,0)) * CAST(_v.`n` AS DECIMAL(19,0))) AS BIGINT) AS `c1`, CASE WHEN SUM(CASE WHEN (_v.`quantity`) IS NULL THEN 0 ELSE _v.`n` END) > 0 THEN CAST(SUM(CAST(_v.`quantity` AS DECIMAL(10,0)) * CAST(_v.`n` AS DECIMAL(19,0))) AS DOUBLE) / CAST(SUM(CASE WHEN (_v.`quantity`) IS NULL THEN 0 ELSE _v.`n` END) AS DOUBLE) END AS `c2`, MIN(_v.`quantity`) AS `c3` FROM `v` AS _v
----
claim: a key without COUNT(*) has no weight
view: order_id BIGINT; quantity INT; s DECIMAL(22,2); k BIGINT; a DECIMAL(16,6) | SELECT order_id, quantity, SUM(price) AS s, COUNT(price) AS k, AVG(price) AS a FROM sales.order_lines GROUP BY order_id, quantity
query: SELECT SUM(quantity) FROM sales.order_lines
not: aggregates
----
claim: COUNT DISTINCT of a key
view: order_id BIGINT; quantity INT; n BIGINT; s DECIMAL(22,2); k BIGINT; a DECIMAL(16,6) | SELECT order_id, quantity, COUNT(*) AS n, SUM(price) AS s, COUNT(price) AS k, AVG(price) AS a FROM sales.order_lines GROUP BY order_id, quantity
query: SELECT order_id, COUNT(DISTINCT quantity) FROM sales.order_lines GROUP BY order_id
gives: SELECT _v.`order_id` AS `c0`, COUNT(DISTINCT _v.`quantity`) AS `c1` FROM `v` AS _v GROUP BY _v.`order_id`
----
claim: COUNT DISTINCT of what is no key
view: order_id BIGINT; quantity INT; n BIGINT; s DECIMAL(22,2); k BIGINT; a DECIMAL(16,6) | SELECT order_id, quantity, COUNT(*) AS n, SUM(price) AS s, COUNT(price) AS k, AVG(price) AS a FROM sales.order_lines GROUP BY order_id, quantity
query: SELECT order_id, COUNT(DISTINCT price) FROM sales.order_lines GROUP BY order_id
not: aggregates
----
claim: a sum of DOUBLE is added in one order only
view: order_id BIGINT; quantity INT; s DOUBLE | SELECT order_id, quantity, SUM(CAST(price AS DOUBLE)) AS s FROM sales.order_lines GROUP BY order_id, quantity
query: SELECT order_id, SUM(CAST(price AS DOUBLE)) FROM sales.order_lines GROUP BY order_id
not: aggregates
----
claim: the number of the view's rows is not the number of rows
view: order_id BIGINT; quantity INT; s DECIMAL(22,2); k BIGINT; a DECIMAL(16,6) | SELECT order_id, quantity, SUM(price) AS s, COUNT(price) AS k, AVG(price) AS a FROM sales.order_lines GROUP BY order_id, quantity
query: SELECT order_id, COUNT(*) FROM sales.order_lines GROUP BY order_id
not: aggregates
