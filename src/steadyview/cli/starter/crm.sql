PRAGMA journal_mode = WAL;
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, region TEXT);
INSERT INTO customers VALUES
    (1, 'Ada', 'north'),
    (2, 'Bruno', 'south'),
    (3, 'Chloé', 'north'),
    (4, 'Dana', NULL);
