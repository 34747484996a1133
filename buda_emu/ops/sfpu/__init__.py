"""Functions of the vector unit as ops: exp, log, gelu and their like, on the part of each tile that the vector mode
names.
"""
