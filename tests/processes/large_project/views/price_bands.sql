SELECT b.band, COUNT(*) AS lines, SUM(l.quantity) AS pieces
FROM shop.lines l
JOIN (VALUES ('low', 0, 5), ('middle', 5, 20), ('high', 20, 1000)) AS b(band, least, most)
  ON l.price >= b.least AND l.price < b.most
GROUP BY b.band
