"""What one op costs one core: its call, its stages, weights that were fitted, and the choice among them."""
