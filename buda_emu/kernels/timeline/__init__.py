"""Kernels of the room `buda_emu.timeline`: when tasks run, and what comes before what."""
