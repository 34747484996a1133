"""Kernels of the CPU twin of Edge TPU packages; their definitions stand in buda_emu/foreign/darwinn/twin/operators."""
