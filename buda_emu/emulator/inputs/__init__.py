"""The inputs of a run: tensors from files, constants, parameters of an image, and generated stimulus for everything
else (NETLIST 5.1, 5.2, 5.4).
"""
