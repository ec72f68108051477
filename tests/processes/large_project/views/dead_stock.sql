-- Products that never sold in a large line. Empty while such a line has no product: nobody knows then.
SELECT id, kind, stock
FROM crm.products
WHERE id NOT IN (SELECT product FROM shop.lines WHERE quantity > 2 AND price > 20)
