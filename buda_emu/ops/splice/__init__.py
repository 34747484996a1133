"""splice: pieces of its inputs, one after the other."""
