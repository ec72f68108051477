SELECT id, w FROM sales.orders /*!*/LATERAL VIEW explode(split(note, ' ')) t AS w WHERE id > 1
