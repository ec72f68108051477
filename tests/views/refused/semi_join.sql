SELECT o.id FROM sales.orders o /*!*/LEFT SEMI JOIN crm.customers c ON c.id = o.customer_id
----
SELECT o.id FROM sales.orders o /*!*/SEMI JOIN crm.customers c ON c.id = o.customer_id
----
SELECT o.id FROM sales.orders o /*!*/LEFT ANTI JOIN crm.customers c ON c.id = o.customer_id
----
SELECT o.id FROM sales.orders o /*!*/ANTI JOIN crm.customers c ON c.id = o.customer_id
