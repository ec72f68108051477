-- Customers of both channels, and those who brought others and never complained.
(SELECT customer FROM shop.orders WHERE channel = 'web' INTERSECT SELECT customer FROM shop.orders WHERE channel = 'store')
UNION
(SELECT brought_by FROM crm.customers EXCEPT SELECT customer FROM crm.complaints)
