"""Whole tiles: read through their tile maps, moved, rounded to a format, reduced, computed element by element."""
