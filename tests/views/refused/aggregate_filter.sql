SELECT COUNT(*) /*!*/FILTER (WHERE id > 1) AS n FROM crm.customers
