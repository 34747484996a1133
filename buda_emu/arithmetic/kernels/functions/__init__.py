"""Functions of one value: the C library's with its bits (`libm`), shorter ways to the same bits, and the functions of
ops that are made of them."""
