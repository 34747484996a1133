"""Programs of a netlist, instruction by instruction: variables, loops, and queue settings with their values. All code
that walks through a program uses it: `runtime` executes what an `execute` names, `timing` assigns cycles to it, the
rules check it. Holds no tensors.
"""
