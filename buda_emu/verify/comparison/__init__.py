"""Whether a result is close enough, and how far it is from what was expected (NETLIST 5.3): PCC, allclose, and
figures that describe the error.
"""
