"""Rewrites of the graph, one file each."""
