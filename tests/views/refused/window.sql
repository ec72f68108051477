SELECT id, SUM(customer_id) /*!*/OVER (PARTITION BY note) AS s FROM sales.orders
----
SELECT id, /*!*/row_number() OVER (ORDER BY id) AS n FROM sales.orders
----
SELECT id FROM sales.orders /*!*/QUALIFY row_number() OVER (ORDER BY id) = 1
----
SELECT id, SUM(id) OVER w AS s FROM sales.orders /*!*/WINDOW w AS (PARTITION BY note)
----
SELECT id FROM sales.orders /*!*/WINDOW w AS (PARTITION BY note)
