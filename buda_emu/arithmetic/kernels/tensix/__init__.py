"""The units of `buda_emu.arithmetic.tensix` as kernels: folders and most files have the names of their definitions.

Here stands what several units need, words of Dst and Src and tiles as rows of 1024 (`words`); and `picks`, products
with a sparse matrix that picks lines, which the matrix unit computes in all of these ways.
"""
