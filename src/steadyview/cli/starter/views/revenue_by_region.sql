-- Revenue per region, over two databases. Every state it shows is the state after some commit.
CREATE MATERIALIZED VIEW revenue_by_region
TBLPROPERTIES ('steadyview.level' = 'complete')
AS SELECT c.region, COUNT(*) AS order_lines, SUM(l.price_cents * l.quantity) AS revenue_cents
   FROM sales.orders o
   JOIN sales.order_lines l ON l.order_id = o.id
   JOIN crm.customers c ON c.id = o.customer_id
   GROUP BY c.region
