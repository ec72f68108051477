CREATE MATERIALIZED VIEW v TBLPROPERTIES ('steadyview.policy' = 'ipda', /*!*/'steadyview.schedule' = 'sometimes') AS SELECT id FROM sales.orders
----
CREATE MATERIALIZED VIEW v TBLPROPERTIES ('steadyview.policy' = 'ipda', /*!*/'steadyview.schedule' = 'every 0 minutes') AS SELECT id FROM sales.orders
----
CREATE MATERIALIZED VIEW v
TBLPROPERTIES ('steadyview.policy' = 'ipda')
TBLPROPERTIES (/*!*/'steadyview.schedule' = 'daily at 06:00 Europe/Berln') AS SELECT id FROM sales.orders
----
CREATE MATERIALIZED VIEW v TBLPROPERTIES ('steadyview.policy' = 'dpda', /*!*/'steadyview.schedule' = 'daily at 24:00') AS SELECT id FROM sales.orders
----
CREATE MATERIALIZED VIEW v TBLPROPERTIES ('steadyview.policy' = 'dpda', /*!*/'steadyview.schedule' = 'cron 0 6 31 2 *') AS SELECT id FROM sales.orders
----
CREATE MATERIALIZED VIEW v TBLPROPERTIES ('steadyview.policy' = 'dpda', /*!*/'steadyview.schedule' = 'cron 60 6 * * *') AS SELECT id FROM sales.orders
