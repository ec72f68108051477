SELECT /*!*/window(placed, '1 day') AS w, COUNT(*) AS n FROM sales.orders GROUP BY 1
