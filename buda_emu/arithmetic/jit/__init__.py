"""The JIT: compiles functions on plain arrays to machine code, keeps the code on disk, and calls it without numba.

`kernel` and `helper` (`kernel.py`) mark the functions; `machine_code` keeps, loads and calls what they became;
`compiling` makes it, by numba, and is imported when something is compiled; `intrinsics` is code that this room writes
in LLVM itself, by the means of `llvm_code`; `thread_team` lets threads share the items of a kernel. Nothing here knows
tiles, number formats or ops: rooms whose kernels call further LLVM code name it to `sources.register_intrinsics`.
docs/jit.md explains it in ten minutes.
"""
