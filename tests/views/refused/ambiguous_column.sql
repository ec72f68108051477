SELECT /*!*/id FROM sales.orders o JOIN crm.customers c ON c.id = o.customer_id
----
SELECT /*!*/x.a FROM (SELECT id AS a, note AS a FROM sales.orders) x
