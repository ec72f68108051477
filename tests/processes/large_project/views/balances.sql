-- What is open of each order, also of those without lines or payments.
SELECT COALESCE(t.order_id, p.order_id) AS order_id, t.amount, p.paid,
       COALESCE(t.amount, 0) - COALESCE(p.paid, 0) AS still_open
FROM order_totals t
FULL OUTER JOIN order_payments p ON p.order_id = t.order_id
