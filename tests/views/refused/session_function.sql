SELECT id, /*!*/now() AS x FROM sales.orders
----
SELECT id, /*!*/current_date AS x FROM sales.orders
----
SELECT id, /*!*/current_date() AS x FROM sales.orders
----
SELECT id, /*!*/current_timestamp AS x FROM sales.orders
----
SELECT id, /*!*/localtimestamp() AS x FROM sales.orders
----
SELECT id, /*!*/current_user AS x FROM sales.orders
----
SELECT id, /*!*/session_user() AS x FROM sales.orders
----
SELECT id, /*!*/user AS x FROM sales.orders
----
SELECT id, /*!*/current_catalog() AS x FROM sales.orders
----
SELECT id, /*!*/current_database() AS x FROM sales.orders
----
SELECT id, /*!*/current_timezone() AS x FROM sales.orders
----
SELECT id, /*!*/version() AS x FROM sales.orders
----
SELECT id, /*!*/unix_timestamp() AS x FROM sales.orders
----
SELECT id FROM sales.orders WHERE placed >= DATE /*!*/'today'
----
SELECT id FROM sales.orders WHERE placed > /*!*/' Yesterday '
----
SELECT id FROM sales.orders WHERE CAST(/*!*/'now' AS TIMESTAMP) > placed
