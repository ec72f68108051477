CREATE MATERIALIZED VIEW v
TBLPROPERTIES ('owner' = 'me', /*!*/'steadyview.lebel' = 'complete')
AS SELECT id FROM sales.orders
