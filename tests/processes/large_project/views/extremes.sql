SELECT COUNT(*) AS orders, MIN(lines) AS fewest, MAX(amount) AS dearest, AVG(lines) AS lines_each, SUM(amount) AS amount
FROM (
    SELECT order_id, COUNT(*) AS lines, SUM(price) AS amount
    FROM shop.lines
    GROUP BY order_id
    HAVING COUNT(*) < 9
)
