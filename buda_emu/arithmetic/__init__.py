"""Numbers on the chip: formats, tiles and their layout, the arithmetic of a Tensix core, and the compiled kernels."""
