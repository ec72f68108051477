SELECT o.id FROM sales.orders o JOIN /*!*/Other_View v ON v.id = o.id
