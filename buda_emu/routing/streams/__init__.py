"""Streams of the overlay hardware: what the pipes of an epoch need on each core, and whether the cores have it."""
