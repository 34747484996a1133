"""How ops are computed: compiled functions on plain arrays. They know nothing of netlists or ops.

`tiles` moves, rounds and reduces whole tiles and computes them element by element; `products` are matrix products;
`functions` are exp, gelu and their kin, with a C library's of its own (`libm`); `tensix` is the chip's own arithmetic,
whose definition is the room `buda_emu.arithmetic.tensix`; `timeline` and `darwinn` serve the rooms of these names,
`noc` that of `timing`. `intrinsics` is the LLVM code that they call; what compiles them is the room
`buda_emu.arithmetic.jit`.
"""

from buda_emu.arithmetic.jit.sources import register_intrinsics

register_intrinsics("buda_emu.arithmetic.kernels.intrinsics")
