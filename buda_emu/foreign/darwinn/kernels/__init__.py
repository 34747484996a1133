"""Kernels of the CPU twin of Edge TPU packages; buda_emu/foreign/darwinn/twin/operators defines their results."""
