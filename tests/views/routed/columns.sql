claim: any query over rows that are shown
view: id BIGINT; price DECIMAL(12,2) | SELECT o.id, l.price FROM sales.orders o JOIN sales.order_lines l ON l.order_id = o.id
query: SELECT o.id, SUM(l.price), COUNT(DISTINCT l.price) FROM sales.orders o JOIN sales.order_lines l ON l.order_id = o.id GROUP BY o.id HAVING AVG(l.price) > 2
gives: SELECT _v.`id` AS `c0`, SUM(_v.`price`) AS `c1`, COUNT(DISTINCT _v.`price`) AS `c2` FROM `v` AS _v GROUP BY _v.`id` HAVING AVG(_v.`price`) > 2
----
claim: an expression that the view shows
view: t DECIMAL(23,2) | SELECT price * quantity AS t FROM sales.order_lines
query: SELECT (price * quantity) + 1 FROM sales.order_lines
gives: SELECT _v.`t` + 1 AS `c0` FROM `v` AS _v
----
claim: a part of an expression that the view shows
view: t DECIMAL(23,2) | SELECT price * quantity AS t FROM sales.order_lines
query: SELECT price FROM sales.order_lines
not: columns
----
claim: a DOUBLE may have lost its sign of zero
view: d DOUBLE | SELECT CAST(price AS DOUBLE) AS d FROM sales.order_lines
query: SELECT CAST(CAST(price AS DOUBLE) AS STRING) FROM sales.order_lines
not: columns
----
claim: a DOUBLE as a whole
view: d DOUBLE | SELECT CAST(price AS DOUBLE) AS d FROM sales.order_lines
query: SELECT CAST(price AS DOUBLE) FROM sales.order_lines WHERE CAST(price AS DOUBLE) > 1
gives: SELECT _v.`d` AS `c0` FROM `v` AS _v WHERE _v.`d` > 1
----
claim: a constant is nobody's column
view: one INT; id BIGINT | SELECT 1 AS one, id FROM sales.orders
query: SELECT id + 1 FROM sales.orders
gives: SELECT _v.`id` + 1 AS `c0` FROM `v` AS _v
