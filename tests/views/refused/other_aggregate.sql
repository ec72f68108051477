SELECT /*!*/stddev(id) AS m FROM crm.customers
----
SELECT /*!*/collect_list(id) AS m FROM crm.customers
----
SELECT /*!*/try_sum(id) AS m FROM crm.customers
----
SELECT /*!*/any(id = 1) AS m FROM crm.customers
----
SELECT COUNT(id/*!*/, region) AS m FROM crm.customers
----
SELECT /*!*/listagg(region) WITHIN GROUP (ORDER BY region) AS m FROM crm.customers
