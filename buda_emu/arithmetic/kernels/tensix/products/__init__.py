"""Products on the matrix unit (FPU): as the hardware counts, in integers, and in singles where that gives the same bits
in less time; fidelity phases, sums in Dst, and results that are packed and read back (spills)."""
