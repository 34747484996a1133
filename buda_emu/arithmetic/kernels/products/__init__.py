"""Products of matrices of tiles: dense, sparse, depthwise, of integers, and what follows a product in the same
kernel."""
