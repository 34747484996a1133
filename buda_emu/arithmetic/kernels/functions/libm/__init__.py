"""The C library's functions, bit for bit: the reference's results contain their last bits (OPS 5).

These are the routines of glibc 2.36 on an x86-64 processor with fused multiply-add. Each function takes and returns a
numpy scalar of its own type, can be called from kernels and from Python, and gives the same bits on every machine.
Where the library's code has one rounding for a product and a sum, `fma` stands here; every other `*`, `+` and `-` is
rounded by itself. NaN results have the sign and payload that an x86-64 processor gives them.
"""
