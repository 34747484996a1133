"""LLVM code that kernels call as functions, of use to any kernel: memory that threads share, parts of arrays, shifts of
32 bits, a few of Python's and numpy's functions; and what such code is built from (`code`, `vectors`).

The functions themselves stand in the room above, in Python or numpy, which defines them. Importing this room makes them
known to numba; only a process that compiles does so.
"""

from buda_emu.arithmetic.jit.intrinsics import parts, plain, shifts, thread_team

__all__ = ["parts", "plain", "shifts", "thread_team"]
