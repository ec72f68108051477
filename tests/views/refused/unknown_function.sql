SELECT /*!*/my_udf(id) AS x FROM sales.orders
----
SELECT tools./*!*/upper(note) AS x FROM sales.orders
----
SELECT /*!*/java_method2('a') AS x FROM sales.orders
