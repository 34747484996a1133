"""The arithmetic units of a Tensix core, bit for bit, in plain numpy: the definition of `precision=device`.

`conversions` is the unpacker and the packer, `products` and `elementwise` the matrix unit (FPU), `functions` the vector
unit (SFPU); `words`, `lanes` and `registers` say how values lie in Src, Dst and LReg, `claims` what is not claimed of
them. One module for each unit, named and ordered as DEVICE_NUMERICS names them; `buda_emu.arithmetic.kernels.tensix`
computes the same fast.
"""
