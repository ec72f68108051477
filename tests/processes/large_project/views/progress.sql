-- How many transactions of each database the views of this commit show.
SELECT 'shop' AS source, n FROM shop.progress
UNION ALL
SELECT 'crm' AS source, n FROM crm.progress
