"""Generating: modules whose caches stay on the machine, and the loop that picks tokens."""
