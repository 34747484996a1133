"""How a temporal graph runs: planned once, scheduled in chunks of inputs, computed on kernels over threads."""
