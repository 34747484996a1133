"""Element by element on the matrix unit: sums and products, by integers and by singles, maxima of pools, and moves
between registers."""
