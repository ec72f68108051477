SELECT /*!*/java_method('java.lang.System', 'getenv', o.note) AS x FROM sales.orders o
----
SELECT o.id FROM sales.orders o WHERE /*!*/`Reflect`('java.lang.System', 'getenv') IS NULL
----
SELECT /*!*/input_file_name() AS x FROM sales.orders
----
SELECT /*!*/xpath_string(note, 'a') AS x FROM sales.orders
----
SELECT SUM(CASE WHEN try_cast(/*!*/from_xml(note, 'a INT').a AS INT) = 1 THEN 1 END) AS x FROM sales.orders
