"""Element by element on the matrix unit: sums, products, maxima of pools, and moves between the registers.

DEVICE_NUMERICS 2.
"""
