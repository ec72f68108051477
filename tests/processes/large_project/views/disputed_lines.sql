SELECT l.order_id, l.product, l.price
FROM shop.lines l
WHERE l.product IN (SELECT product FROM crm.complaints WHERE severity > 1)
  AND l.price NOT IN (SELECT p.amount FROM shop.payments p WHERE p.order_id = l.order_id)
