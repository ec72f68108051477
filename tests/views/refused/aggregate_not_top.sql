SELECT x.n FROM (SELECT region, COUNT(*) AS n FROM crm.customers GROUP BY region) x WHERE /*!*/x.n > 1
----
SELECT o.id FROM sales.orders o /*!*/JOIN (SELECT id, COUNT(*) AS n FROM crm.customers GROUP BY id) x ON x.id = o.id
----
/*!*/SELECT SUM(n) AS s FROM (SELECT region, COUNT(*) AS n FROM crm.customers GROUP BY region)
----
WITH g AS (SELECT COUNT(*) AS n FROM crm.customers) SELECT g.n, o.id FROM g, /*!*/sales.orders o
