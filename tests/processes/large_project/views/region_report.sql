-- Each customer beside his region: both come from customer_sales, and must agree at every commit.
SELECT s.customer, s.region, s.amount, r.amount AS region_amount, r.customers, m.content, m.on_the_web
FROM customer_sales s
JOIN region_sales r ON r.region <=> s.region
LEFT JOIN customer_marks m ON m.id = s.customer
