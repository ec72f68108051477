SELECT id, note, /*!*/customer_id AS ID FROM sales.orders
----
SELECT o.*, /*!*/c.* FROM sales.orders o JOIN crm.customers c ON c.id = o.customer_id
----
SELECT COUNT(*), /*!*/count(1) FROM sales.orders
