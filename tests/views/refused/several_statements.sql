SELECT id FROM sales.orders; /*!*/SELECT region FROM crm.customers;
