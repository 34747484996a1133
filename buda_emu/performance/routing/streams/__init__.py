"""Streams of the overlay hardware, as the vendor's pipegen2 makes them: the streams, phases and L1 that the pipes of an
epoch need on each core, and the limits of a core (`model.py`)."""
