"""Kernels of the room `buda_emu.timeline`: the event loop that says when tasks run, and what comes before what."""
