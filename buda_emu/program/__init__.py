"""Programs of a netlist, instruction by instruction: variables, loops, and queue settings with their values. Shared
by all that walk through a program: `runtime` executes what an `execute` names, `timing` gives it cycles, the
rules check it. Holds no tensors.
"""
