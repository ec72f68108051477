PRAGMA journal_mode = WAL;
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL);
CREATE INDEX orders_by_customer ON orders (customer_id);
CREATE TABLE order_lines (
    order_id INTEGER NOT NULL,
    line INTEGER NOT NULL,
    product TEXT NOT NULL,
    quantity INTEGER NOT NULL,
    price_cents INTEGER NOT NULL,
    PRIMARY KEY (order_id, line)
);
INSERT INTO orders VALUES (1, 1), (2, 2), (3, 2), (4, 3);
INSERT INTO order_lines VALUES
    (1, 1, 'lamp', 2, 1950),
    (1, 2, 'bulb', 6, 320),
    (2, 1, 'desk', 1, 24900),
    (3, 1, 'chair', 4, 8900),
    (4, 1, 'lamp', 1, 1950);
