WITH /*!*/RECURSIVE r AS (SELECT id FROM sales.orders) SELECT id FROM r
