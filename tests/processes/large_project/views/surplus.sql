-- Copies count: three lines and one complaint of a product are two fine lines and one bad.
SELECT 'fine' AS lines, product
FROM (SELECT product FROM shop.lines EXCEPT ALL SELECT product FROM crm.complaints)
UNION ALL
SELECT 'bad' AS lines, product
FROM (SELECT product FROM shop.lines INTERSECT ALL SELECT product FROM crm.complaints)
