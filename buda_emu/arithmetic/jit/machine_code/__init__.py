"""Machine code kept on disk, and brought back into memory as a function that Python calls: without numba."""
