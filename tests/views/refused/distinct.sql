SELECT /*!*/DISTINCT region FROM crm.customers
----
SELECT x.region FROM (SELECT /*!*/DISTINCT region FROM crm.customers) x
