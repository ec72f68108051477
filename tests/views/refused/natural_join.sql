SELECT note FROM sales.orders /*!*/NATURAL JOIN crm.customers
----
SELECT note FROM sales.orders /*!*/NATURAL LEFT JOIN crm.customers
