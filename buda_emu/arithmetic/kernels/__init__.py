"""How ops are computed: compiled functions on plain arrays. They know nothing of netlists or ops.

`tiles` moves, rounds and reduces whole tiles and computes them element by element; `products` are matrix products;
`functions` are exp, gelu and other functions of one value, with a C library's of its own (`libm`); `tensix` is the
chip's own arithmetic, which `buda_emu.arithmetic.tensix` defines; `timeline` serves the package of this name, `noc` the
timing of transfers (both in `buda_emu.performance`). `intrinsics` has the LLVM code that kernels call;
`buda_emu.arithmetic.jit` compiles them.
"""

from buda_emu.arithmetic.jit.sources import register_intrinsics

register_intrinsics("buda_emu.arithmetic.kernels.intrinsics")
