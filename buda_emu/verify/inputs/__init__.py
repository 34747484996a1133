"""The inputs of a run: tensors from files, constants, parameters of an image, and stimulus where no data is given
(NETLIST 5.1, 5.2, 5.4).
"""
