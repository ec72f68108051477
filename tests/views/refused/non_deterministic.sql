SELECT id, /*!*/rand() AS x FROM sales.orders
----
SELECT id, /*!*/randn(3) AS x FROM sales.orders
----
SELECT id, /*!*/uuid() AS x FROM sales.orders
----
SELECT id, /*!*/shuffle(array(1, 2)) AS x FROM sales.orders
----
SELECT id, /*!*/monotonically_increasing_id() AS x FROM sales.orders
----
SELECT id, /*!*/spark_partition_id() AS x FROM sales.orders
----
SELECT id, /*!*/`rand`() AS x FROM sales.orders
----
SELECT id FROM sales.orders WHERE /*!*/rand() < 0.5
----
SELECT SUM(id * /*!*/rand()) AS s FROM sales.orders
