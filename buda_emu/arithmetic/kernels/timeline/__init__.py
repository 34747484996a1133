"""Kernels of the room `buda_emu.performance.timeline`: the event loop that says when tasks run, and what comes before
what.
"""
