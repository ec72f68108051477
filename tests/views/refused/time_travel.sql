SELECT id FROM sales.orders /*!*/VERSION AS OF 3
----
SELECT id FROM sales.orders /*!*/TIMESTAMP AS OF '2020-01-01'
----
SELECT id FROM sales.orders /*!*/FOR SYSTEM_VERSION AS OF 3
