"""depthwise: products of column groups."""
