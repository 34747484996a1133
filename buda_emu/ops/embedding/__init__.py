"""embedding: rows of a table, picked by indices."""
