claim: a view that is recomputed answers its own text
view: customer_id BIGINT; placed DATE | SELECT customer_id, placed FROM sales.orders | recomputed
query: SELECT placed FROM sales.orders
not: view
