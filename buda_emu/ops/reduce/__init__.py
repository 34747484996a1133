"""reduce: maximum over rows, columns, tiles or z."""
