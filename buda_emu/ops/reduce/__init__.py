"""reduce: maximum over rows, columns, tiles or z. On the device max pool along r and c, a chain of maxima along z."""
