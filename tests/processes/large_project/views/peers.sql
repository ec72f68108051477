-- Customers and those of their region who bought at least as much: a view joined with itself.
SELECT a.customer, b.customer AS peer, a.region
FROM customer_sales a
JOIN customer_sales b ON b.region = a.region AND b.fewest = a.fewest AND b.lines >= a.lines AND b.customer <> a.customer
