"""Products on the matrix unit (FPU): fidelity phases, sums in Dst, one face and whole tiles, integers.

DEVICE_NUMERICS 2.
"""
