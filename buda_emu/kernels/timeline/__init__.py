"""Kernels of the room `buda_emu.timeline`: the event loop that says when tasks run, and which tasks come before which."""
