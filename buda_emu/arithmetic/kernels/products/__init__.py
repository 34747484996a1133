"""Products of matrices of tiles: dense, sparse, depthwise and of integers, with what follows a product in the same
kernel."""
