SELECT id FROM sales.orders WHERE id = /*!*/?
----
SELECT id FROM sales.orders WHERE id = /*!*/:id
----
SELECT id FROM sales.orders WHERE id = /*!*/${id}
----
SELECT id FROM sales.orders WHERE id = /*!*/@id
