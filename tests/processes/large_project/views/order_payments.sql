SELECT order_id, SUM(amount) AS paid, COUNT(method) AS payments, MAX(method) AS method
FROM shop.payments
GROUP BY order_id
