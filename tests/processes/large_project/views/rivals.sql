-- Kinds that sell better in the same region.
WITH kinds AS (
    SELECT region, kind, SUM(amount) AS amount, COUNT(*) AS lines FROM sold GROUP BY region, kind
)
SELECT a.region, a.kind, b.kind AS rival, b.amount - a.amount AS behind
FROM kinds a
JOIN kinds b ON b.region = a.region AND b.amount > a.amount
