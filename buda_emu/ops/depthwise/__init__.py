"""depthwise: products of column groups with rows of weight tiles. Bias and requantisation are those of matmul."""
