/*!*/DROP TABLE sales.orders
----
CREATE /*!*/VIEW v AS SELECT id FROM sales.orders
----
CREATE MATERIALIZED VIEW v /*!*/PARTITIONED BY (id) AS SELECT id FROM sales.orders
----
CREATE MATERIALIZED VIEW v /*!*/(a, b) AS SELECT id, note FROM sales.orders
----
CREATE MATERIALIZED VIEW v AS /*!*/DELETE FROM sales.orders
----
CREATE MATERIALIZED VIEW v TBLPROPERTIES ('a' = /*!*/1) AS SELECT id FROM sales.orders
----
-- nothing but a comment
