"""Whole tiles: read through their TMs, moved, rounded to a format, reduced, computed element by element."""
