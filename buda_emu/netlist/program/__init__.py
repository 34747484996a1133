"""Programs of a netlist, instruction by instruction: variables, loops, and queue settings with their values.

All code that walks through a program uses this package: `emulator.runtime` executes the graphs, `performance.timing`
assigns cycles to them, the rules check them. No tensors are involved.
"""
