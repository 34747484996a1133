"""splice: pieces of its inputs, one after the other. It moves tiles and computes nothing."""
