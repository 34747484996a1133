"""Blocks, cores, epochs and addresses."""
