claim: aliases and the order of tables do not matter
view: id BIGINT; price DECIMAL(12,2) | SELECT o.id, l.price FROM sales.orders o JOIN sales.order_lines l ON l.order_id = o.id
query: SELECT y.price FROM sales.order_lines y, sales.orders x WHERE x.id = y.order_id
gives: SELECT _v.`price` AS `c0` FROM `v` AS _v
----
claim: a self-join has one mapping of both aliases
view: a DATE; b DATE | SELECT p.placed AS a, q.placed AS b FROM sales.orders p JOIN sales.orders q ON p.customer_id = q.id
query: SELECT y.placed FROM sales.orders x, sales.orders y WHERE x.id = y.customer_id
gives: SELECT _v.`a` AS `c0` FROM `v` AS _v
----
claim: a table more in the view drops or repeats rows
view: id BIGINT; price DECIMAL(12,2) | SELECT o.id, l.price FROM sales.orders o JOIN sales.order_lines l ON l.order_id = o.id
query: SELECT id FROM sales.orders
not: from
----
claim: a table more in the query
view: customer_id BIGINT; placed DATE | SELECT customer_id, placed FROM sales.orders
query: SELECT o.placed FROM sales.orders o JOIN sales.order_lines l ON l.order_id = o.id
not: from
----
claim: a table read twice
view: id BIGINT | SELECT id FROM sales.orders
query: SELECT x.id FROM sales.orders x, sales.orders y
not: from
----
claim: a self-join is not turned around
view: a DATE | SELECT p.placed AS a FROM sales.orders p JOIN sales.orders q ON p.customer_id = q.id
query: SELECT q.placed FROM sales.orders p JOIN sales.orders q ON p.customer_id = q.id
not: columns
