"""The units of `buda_emu.arithmetic.tensix` as kernels: folders and most files have the names of their definitions.

Here stands what several units need: words of Dst and Src (`words`), tiles as rows (`images`); and `picks`, products
with a sparse matrix that picks lines, which the matrix unit computes in all of these ways.
"""
