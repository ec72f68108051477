SELECT region, COUNT(*) AS customers, SUM(amount) AS amount, AVG(lines) AS lines_each, MAX(largest) AS largest
FROM customer_sales
GROUP BY region
HAVING COUNT(*) > 1
