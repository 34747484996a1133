"""Streams of the overlay hardware, as the vendor's pipegen2 makes them: what the pipes of an epoch need on each core,
in streams, phases and L1, and whether the cores have it (limits in `model.py`).
"""
