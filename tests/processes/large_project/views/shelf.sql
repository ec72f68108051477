SELECT p.id, p.kind, p.stock, SUM(l.quantity) AS sold, AVG(l.price) AS average_price
FROM shop.lines l
RIGHT JOIN crm.products p ON p.id = l.product AND l.quantity <= p.stock
GROUP BY p.id, p.kind, p.stock
