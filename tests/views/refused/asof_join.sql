SELECT o.id FROM sales.orders o /*!*/ASOF JOIN crm.customers c ON c.id = o.customer_id
