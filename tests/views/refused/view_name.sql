CREATE MATERIALIZED VIEW /*!*/a.b AS SELECT id FROM sales.orders
----
CREATE MATERIALIZED VIEW /*!*/`a/b` AS SELECT id FROM sales.orders
