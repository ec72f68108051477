SELECT customer, region, COUNT(*) AS lines, SUM(amount) AS amount, MAX(amount) AS largest, MIN(quantity) AS fewest
FROM sold
GROUP BY customer, region
