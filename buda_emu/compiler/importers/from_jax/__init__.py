"""JAX functions as graphs, by the StableHLO that jax lowers them to. Importing `reader` imports `jax`."""
