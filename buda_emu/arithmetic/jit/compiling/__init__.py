"""From a kernel to machine code, by numba: imported only when something is compiled."""
