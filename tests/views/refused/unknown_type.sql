SELECT id::/*!*/text AS t FROM sales.orders
----
SELECT CAST(id AS /*!*/strng) AS t FROM sales.orders
----
SELECT id FROM sales.orders WHERE CAST(note AS /*!*/varchar) = 'a'
