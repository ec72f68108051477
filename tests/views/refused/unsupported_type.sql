SELECT id, /*!*/shape FROM sales.places
----
SELECT /*!*/* FROM sales.places
----
SELECT p.id FROM sales.places p JOIN sales.places q USING (/*!*/shape)
