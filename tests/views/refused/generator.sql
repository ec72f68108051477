SELECT id, /*!*/explode(split(note, ' ')) AS word FROM sales.orders
----
SELECT /*!*/posexplode(array(id)) AS (a, b) FROM sales.orders
