SELECT order_id, COUNT(*) AS lines, SUM(quantity * price) AS amount, MIN(price) AS cheapest, MAX(price) AS dearest
FROM shop.lines
GROUP BY order_id
