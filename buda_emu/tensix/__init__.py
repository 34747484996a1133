"""The arithmetic units of a Tensix core, bit for bit, in plain numpy: the definition of `precision=device`.

One module for each unit, named and ordered as DEVICE_NUMERICS names them; `buda_emu.kernels.tensix` computes the same
fast.
"""
