"""embedding: rows of a table, picked by indices. It moves elements and computes nothing."""
