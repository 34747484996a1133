"""Two runs of a netlist side by side, compared at every tensor: which op goes wrong first, and why the chip's answer
differs from the ideal one (docs/run/numerics.md).
"""
